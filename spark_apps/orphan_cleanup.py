"""``spark-submit`` program of the job ``orphan_cleanup``; see docs/jobs.md."""

import sys

from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("orphan_cleanup", clean))
