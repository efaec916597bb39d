"""Whether this run proves everything (``make prove``), or what fits into ``make test``."""

from __future__ import annotations

import os

PROVE: bool = os.environ.get("LOWTIDE_PROVE") == "1"
