"""``spark-submit`` program of the job ``journal_replay``; see docs/jobs.md."""

import sys

from lowtide_spark.run.job import run_job
from lowtide_spark.undo.replay import replay

if __name__ == "__main__":
    sys.exit(run_job("journal_replay", replay))
