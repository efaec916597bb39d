"""Whether a file can be written, asked before the work whose outcome goes there: it may take hours."""

from __future__ import annotations

import os
from pathlib import Path

from lowtide.errors import UsageError


def check_writable(option: str, file: Path) -> None:
    """Refuse a *file* of an *option* that cannot be written, as far as can be seen now. Writes nothing.

    Raises:
        UsageError: its folder is not there, it is a folder itself, or this user may not write there.
    """
    folder = file.parent
    if not folder.is_dir():
        raise UsageError(f"{option} {file}: there is no folder {folder}", "Make it, or give another file")
    if file.is_dir():
        raise UsageError(f"{option} {file}: it is a folder", "Give a file in it")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise UsageError(f"{option} {file}: this user may not write there", "Give a file in a folder of yours")
