"""``spark-submit`` program of the job ``why``; see docs/operating.md."""

import sys

from lowtide_spark.asking.why import why
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("why", why, read_only=True))
