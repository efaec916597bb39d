"""``spark-submit`` program of the job ``sideline_restore``; see docs/jobs.md."""

import sys

from lowtide_spark.job import run_job
from lowtide_spark.restore import restore

if __name__ == "__main__":
    sys.exit(run_job("sideline_restore", restore))
