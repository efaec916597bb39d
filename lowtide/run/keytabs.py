"""Whose keys a keytab has: MIT's format, as ``klist -k`` shows it. No key is looked at, none leaves the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from lowtide.errors import UsageError

_MAGIC = b"\x05\x02"


def check(file: str, principal: str, where: str) -> None:
    """Refuse a keytab that *principal* cannot log in with; *where* both are said, for the message.

    That the realm still takes the key is not known from it.

    Raises:
        UsageError: it is not there for this user to read, is none, or has no key of *principal*.
    """
    remedy = f"`klist -k {file}` shows whose keys it has; {where} name both"
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"the keytab {file} is not there for this user to read ({error.strerror})", remedy) from error
    if not content.startswith(_MAGIC):
        raise UsageError(f"{file} is no keytab", remedy)
    try:
        known = sorted(set(_principals(content)))
    except (struct.error, ValueError) as error:
        raise UsageError(f"{file} is no keytab: it ends in the middle", remedy) from error
    if principal not in known and principal not in {each.partition("@")[0] for each in known}:
        raise UsageError(f"the keytab {file} has no key of {principal}, but of {', '.join(known) or 'nobody'}", remedy)


def _principals(content: bytes) -> Iterator[str]:
    at = len(_MAGIC)
    while at + 4 <= len(content):
        (size,) = struct.unpack_from(">i", content, at)
        at += 4
        if size > 0:  # else so many bytes of an entry that was removed
            yield _principal(content[at : at + size])
        at += abs(size)


def _principal(entry: bytes) -> str:
    """Of an entry: how many components its name has, the realm, then these; each with its length before it."""
    (count,) = struct.unpack_from(">H", entry)
    at, texts = 2, []
    for _ in range(count + 1):
        (size,) = struct.unpack_from(">H", entry, at)
        texts.append(entry[at + 2 : at + 2 + size].decode("utf-8", "replace"))
        at += 2 + size
    realm, *names = texts
    return f"{'/'.join(names)}@{realm}"
