"""``spark-submit`` program of the job ``commit_table_pruning``; see docs/jobs.md."""

import sys

from lowtide_spark.cleaning.pruning import prune
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("commit_table_pruning", prune))
