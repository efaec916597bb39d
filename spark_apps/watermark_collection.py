"""``spark-submit`` program of the job ``watermark_collection``; see docs/jobs.md."""

import sys

from lowtide_spark.job import run_job
from lowtide_spark.watermarks import collect

if __name__ == "__main__":
    sys.exit(run_job("watermark_collection", collect))
