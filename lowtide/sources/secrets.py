"""Values that are told to nobody: those of settings that are called like secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: What a setting is called that holds a secret, by Spark's own rule (``spark.redaction.regex``).
_SECRET = re.compile("(?i)secret|password|token|access[.]?key")


def is_secret(name: object) -> bool:
    """Whether a setting of that name is called like one that holds a secret."""
    return _SECRET.search(str(name)) is not None


def found(path: Iterable[object], value: Any) -> str:
    """That *value* was found at *path*; without what is a secret there, or in it, by the names."""
    if any(map(is_secret, path)):
        return "(what was found is not told: it is called like a secret)"
    return f"(found {_open(value)!r})"


def _open(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: "..." if is_secret(name) else _open(each) for name, each in value.items()}
    return [_open(each) for each in value] if isinstance(value, list) else value
