"""Values that are told to nobody: those of settings that are called like secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: What a setting is called that holds a secret, by Spark's own rule (``spark.redaction.regex``); and those of cloud
#: storage that it does not know.
_WORDS = "secret|passw(?:or)?d|passphrase|credential|token|(?:access|account|private|encryption|api)[._-]?key|[.]sas[.]"
_SECRET = re.compile(f"(?i){_WORDS}")
#: Such a setting in one piece with its value.
_ASSIGNED = re.compile(rf"(?i)([\w.-]*(?:{_WORDS})[\w.-]*)(?:\s*[=:]\s*|\s+)\S+")
#: Who logs in to a URL, and how.
_LOGIN = re.compile(r"(?<=:)(//)?\S*@")


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
        # As hbase-site.xml has it, name and value apart.
        hidden = any(is_secret(each) for each in value.values() if isinstance(each, str))
        return {name: "..." if hidden or is_secret(name) else _open(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_open(each) for each in value]
    return masked(value) if isinstance(value, str) else value


def masked(text: str) -> str:
    """*text* without secrets that may be in it: a setting's value in one piece with its name, a URL's login."""
    return _ASSIGNED.sub(r"\1=...", _LOGIN.sub(r"\1...@", text))
