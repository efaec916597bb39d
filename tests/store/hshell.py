"""HBase's shell, as far as Lowtide tells people what to type into it: the statements in a text, done as the shell
would.
"""

from __future__ import annotations

import re
from typing import Any

from lowtide.lab.workload import OmidClient

_STATEMENT = re.compile(r"""(put|delete|deleteall|flush|major_compact) ('[^']*'(?:, (?:"[^"]*"|'[^']*'|\d+))*)""")


def statements(text: str) -> list[str]:
    """Those in *text*, in its order."""
    return [found[0] for found in _STATEMENT.finditer(text)]


def resolves(text: str) -> list[list[str]]:
    """The commands ``lowtide resolve`` in *text* that say all that is to be said."""
    found = re.findall(r"lowtide (resolve \d+ --(?:aborted|committed \d+ --shown-in \S+ [0-9a-f]+))", text)
    return [command.split() for command in found]


def obey(omid: OmidClient, gateway: Any, *typed: str) -> None:
    """Do as *typed*: ``delete`` takes one version, ``deleteall`` all of a row up to a timestamp (the shell's 2.x
    ``_createdelete_internal``).
    """
    for statement in typed:
        command, arguments = _STATEMENT.fullmatch(statement).groups()  # type: ignore[union-attr]
        table, *values = (_value(part) for part in re.findall(r""""[^"]*"|'[^']*'|\d+""", arguments))
        name = table.decode()
        match command, values:
            case "put", [row, column, value, timestamp]:
                omid.put(name, row, *column.split(b":", 1), int(timestamp), value)
            case "delete", [row, column, timestamp]:
                omid.delete_version(name, row, *column.split(b":", 1), int(timestamp))
            case "deleteall", [row]:
                gateway.table(name).delete(row)
            case "deleteall", [row, b"", timestamp]:
                gateway.table(name).delete(row, timestamp=int(timestamp))
            case "flush", []:
                omid.flush(name)
            case "major_compact", [_]:
                omid.compact(name, major=True)
            case _:
                msg = f"no statement that Lowtide tells: {statement}"
                raise AssertionError(msg)


def _value(text: str) -> bytes:
    if text.isdecimal():
        return text.encode()
    return re.sub(rb"\\x([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text[1:-1].encode())
