"""``spark-submit`` program of the job ``commit_table_pruning``; see docs/jobs.md."""

import sys

from lowtide_spark.job import run_job
from lowtide_spark.pruning import prune

if __name__ == "__main__":
    sys.exit(run_job("commit_table_pruning", prune))
