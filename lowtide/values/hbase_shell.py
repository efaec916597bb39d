r"""Statements of HBase's shell (2.x), to be copied: what a person mends where no rule may. Pure.

A `put` at the timestamp of a cell takes its place; `delete` with a timestamp hides exactly that version, and whatever
is put at that timestamp until a major compaction of the family.
"""

from __future__ import annotations

import re

from lowtide.errors import UsageError
from lowtide.values.formats import encode_long


def quoted(data: bytes) -> str:
    r"""*data* as a string of the shell: letters, digits and what means nothing to Ruby as they are, others as
    ``\xNN``.
    """
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.,:;/=+"
    return '"' + "".join(chr(b) if b in plain else f"\\x{b:02X}" for b in data) + '"'


def unquoted(text: str) -> bytes:
    r"""The bytes that *text* stands for, as :func:`quoted` and lists of cells write them, with or without quotation
    marks around them: ``\xNN`` is a byte, everything else is itself, in UTF-8.

    Raises:
        UsageError: a backslash begins no ``\xNN``.
    """
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if wrong := re.search(r"\\(?!x[0-9A-Fa-f]{2})", text):
        msg = (
            f"a row is written as in HBase's shell, a byte that is no plain character as \\xNN; found "
            f"{text[wrong.start() :][:4]!r} in {text!r}: write a backslash as \\x5C"
        )
        raise UsageError(msg)
    parts = re.split(r"\\x([0-9A-Fa-f]{2})", text)
    return b"".join(bytes.fromhex(part) if n % 2 else part.encode() for n, part in enumerate(parts))


def put_long(table: str, row: bytes, family: bytes, qualifier: bytes, number: int, timestamp: int | None = None) -> str:
    """Put a number in eight bytes, as a shadow cell holds its commit timestamp; without *timestamp* at HBase's own
    time.
    """
    column, value = quoted(family + b":" + qualifier), quoted(encode_long(number))
    return f"put '{table}', {quoted(row)}, {column}, {value}" + ("" if timestamp is None else f", {timestamp}")


def delete(table: str, row: bytes, family: bytes, qualifier: bytes, timestamp: int) -> str:
    """Delete exactly one version of a cell, and let nothing stay hidden behind its marker."""
    name = family.decode(errors="replace")
    return (
        f"delete '{table}', {quoted(row)}, {quoted(family + b':' + qualifier)}, {timestamp}; flush '{table}'; "
        f"major_compact '{table}', '{name}'"
    )


def delete_row(table: str, row: bytes, timestamp: int | None = None) -> str:
    """Delete all of a row up to *timestamp*, inclusive; None: up to now, of a table whose cells have HBase's own
    times.
    """
    return f"deleteall '{table}', {quoted(row)}" + ("" if timestamp is None else f", '', {timestamp}")


def with_long_key(what: str, table: str, timestamp: int) -> str:
    """*what* there is to do with a cell, in the place of a statement, whose key is too long to be told: a part of it
    is another cell's. It says what shows it whole.
    """
    scan = f"scan '{table}', {{TIMERANGE => [{timestamp}, {timestamp + 1}]}}"
    return f"{what}, whose key is too long to be told here; in HBase's shell {scan} shows it whole"
