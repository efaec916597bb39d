"""``spark-submit`` program of the job ``history_gc``; see docs/jobs.md."""

import sys

from lowtide_spark.history.collection import collect_history
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("history_gc", collect_history))
