"""``spark-submit`` program of the job ``watermark_collection``; see docs/jobs.md."""

import sys

from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.run.job import run_job

if __name__ == "__main__":
    sys.exit(run_job("watermark_collection", collect))
