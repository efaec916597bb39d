"""``spark-submit`` program of ``lowtide check``: the hops that only a driver can look at; see docs/operating.md."""

import sys

from lowtide_spark.check import main

if __name__ == "__main__":
    sys.exit(main())
