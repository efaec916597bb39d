"""``spark-submit`` program of the job ``orphan_cleanup``; see docs/jobs.md."""

import sys

from lowtide_spark.job import run_job
from lowtide_spark.orphans import clean

if __name__ == "__main__":
    sys.exit(run_job("orphan_cleanup", clean))
