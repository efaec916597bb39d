"""``spark-submit`` program of the job ``sideline_restore``; see docs/jobs.md."""

import sys

from lowtide_spark.run.job import run_job
from lowtide_spark.undo.restore import restore

if __name__ == "__main__":
    sys.exit(run_job("sideline_restore", restore))
