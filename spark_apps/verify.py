"""``spark-submit`` program of the job ``verify``; see docs/operating.md."""

import sys

from lowtide_spark.run.job import run_job
from lowtide_spark.verification.verify import verify

if __name__ == "__main__":
    sys.exit(run_job("verify", verify, read_only=True, blind=2))
