"""Files for nobody else: row keys in them may be people's data."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write *text*; a file that is made for it can be read by this user alone. One that was there keeps its rights."""
    with open(path, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as sink:
        sink.write(text)
