"""``spark-submit`` program of the job ``balances``; see docs/ledger.md."""

import sys

from lowtide_spark.ledger.balances import balances
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("balances", balances))
