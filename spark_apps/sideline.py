"""``spark-submit`` program of the job ``sideline``; see docs/operating.md."""

import sys

from lowtide_spark.asking.sidelines import look
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("sideline", look, read_only=True))
