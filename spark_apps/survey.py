"""``spark-submit`` program of the job ``survey``; see docs/survey.md."""

import sys

from lowtide_spark.run.job import run_job
from lowtide_spark.survey import survey

if __name__ == "__main__":
    sys.exit(run_job("survey", survey, read_only=True))
