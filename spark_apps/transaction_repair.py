"""``spark-submit`` program of the job ``transaction_repair``; see docs/ledger.md."""

import sys

from lowtide_spark.ledger.repair import repair
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("transaction_repair", repair))
