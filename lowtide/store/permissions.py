"""What HBase says where somebody lacks a right, for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lowtide.config import Config
from lowtide.tables.inventory import Descriptor, Kind
from lowtide.values.text import names_text

_DENIED = re.compile(r"Insufficient permissions[^\n\\]*")
_USER = re.compile(r"user '([^']+)'|user=([^,)\s]+)")
_PLACE = re.compile(r"(?:table|scope)=([^,)\]\s]+)")
_ACTION = re.compile(r"action=(\w+)")
#: HBase's letter of each right in a grant.
_LETTERS = {"READ": "R", "WRITE": "W", "CREATE": "C", "ADMIN": "A", "EXEC": "X"}
_NEEDED = "what each job needs: docs/clusters.md, Permissions in HBase"
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Lack:
    """A *right* (READ, WRITE) that *user* lacks on *table* as a whole: there may be families, or columns, on which they
    have it.
    """

    user: str
    table: str
    right: str
    #: The families that were refused, where each was tried. None: HBase answered for the table.
    families: tuple[str, ...] = ()
    #: Why it is not known whether they lack it; empty: they do.
    unknown: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Lack:
        """As the connector has it (``lowtide.connector.Rights``)."""
        return cls(**{**value, "families": tuple(value.get("families", ()))})


def judged(config: Config, listed: Iterable[Descriptor]) -> dict[str, Iterable[str]]:
    """The families of other people's tables by which jobs judge, by table: each of *listed* that can be read, but for
    those that nobody reads: plain by the configuration, or another oracle's.
    """
    return {
        d.table: d.families
        for d in listed
        if d.enabled
        and d.table not in config.own_tables
        and not config.omid.is_foreign(d.table)
        and config.table(d.table).kind is not Kind.PLAIN
    }


def unreadable(lacks: Sequence[Lack]) -> tuple[str, str]:
    """Which tables a user may not read as a whole, or may not for all that is known, and what to do; empty texts where
    there is none.
    """
    missing = [lack for lack in lacks if lack.right == "READ"]
    if not missing:
        return "", ""
    hides = "HBase leaves out of an answer what its reader may not see, without a word, so nothing is judged"
    if known := [lack for lack in missing if not lack.unknown]:
        return f"{_whole(known)}; {hides}", _grant_whole(known)
    tables, first = names_text([lack.table for lack in missing], _LISTED), missing[0]
    fact = f"it is not known whether {first.user} may read all families of {tables} ({first.unknown}); {hides}"
    return fact, "see that their regions are open, and run again"


def unwritable(lacks: Sequence[Lack]) -> tuple[str, str]:
    """Which tables a user may not write to as a whole, so that nothing is done to them, and what to do; empty texts
    where there is none.
    """
    missing = [lack for lack in lacks if lack.right == "WRITE"]
    return (f"{_whole(missing)}; nothing is done to it", _grant_whole(missing)) if missing else ("", "")


def _whole(lacks: Sequence[Lack]) -> str:
    first = lacks[0]
    refused = f" (of {first.table} it refused {names_text(first.families, _LISTED)})" if first.families else ""
    tables = names_text([lack.table for lack in lacks], _LISTED)
    return (
        f"HBase does not let {first.user} {first.right.lower()} every family: the right {first.right} is missing on "
        f"{tables} as a whole{refused}"
    )


def _grant_whole(lacks: Sequence[Lack]) -> str:
    more = ", and on each of the others" if len(lacks) > 1 else ""
    return (
        f"As an administrator, in HBase's shell: grant '{lacks[0].user}', 'RW', '{lacks[0].table}'{more}, never on "
        f"families or columns; by a policy of Ranger's, for all families and all columns; {_NEEDED}"
    )


def denial(error: object) -> str:
    """Which right is missing, to whom and where, and the grant that gives it; empty where *error*, as it prints, tells
    of something else.
    """
    found = _DENIED.search(str(error))
    if not found:
        return ""
    text = found[0]
    user = next((a or b for a, b in _USER.findall(text)), "this user")
    action = next(iter(_ACTION.findall(text)), "")
    place = next(iter(_PLACE.findall(text)), "").removeprefix("GLOBAL")
    # HBase knows a principal by its first part, unless its rules (auth_to_local) say otherwise.
    given = [f"'{re.split('[/@]', user)[0]}'", f"'{_LETTERS.get(action, 'RWCA')}'", *([f"'{place}'"] if place else [])]
    return (
        f"HBase does not let {user} do this: the right {action or 'for it'} is missing "
        f"{f'on {place}' if place else 'globally'}. As an administrator, in HBase's shell: grant {', '.join(given)}; "
        f"{_NEEDED}"
    )
