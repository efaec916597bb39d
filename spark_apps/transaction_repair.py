"""``spark-submit`` program of the job ``transaction_repair``; see docs/jobs.md."""

import sys

from lowtide_spark.job import run_job
from lowtide_spark.repair import repair

if __name__ == "__main__":
    sys.exit(run_job("transaction_repair", repair))
