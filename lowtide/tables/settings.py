"""What a table's settings keep from whoever reads it: versions that HBase hides, writes that a crash takes back. Pure.

Every job decides by what it reads. Where HBase itself keeps versions from readers, committed cells without shadow cell
are not seen, and what is lowest to a reader is not the lowest there is: the versions below a deletion, hidden as long
as it stands, would be shown again when it goes.

The settings are those that HBase's master tells. A region's server read them when it opened the region, and nothing in
HBase tells which it goes by: so after a change the table is in doubt until every region was opened since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from lowtide.tables.inventory import Change, Descriptor, Entry
from lowtide.values.clock import from_millis
from lowtide.values.skew import MARGIN
from lowtide.values.text import moment_text

#: HBase's "all versions", and its "forever" in seconds.
ALL_VERSIONS = 2**31 - 1
FOREVER = 2**31 - 1

#: Attributes: what HBase takes where the descriptor is silent, the values that hide nothing, and how HBase's shell is
#: told the first of those.
_OPEN: dict[str, tuple[str, tuple[str, ...], str]] = {
    "VERSIONS": ("1", (str(ALL_VERSIONS),), str(ALL_VERSIONS)),
    "TTL": ("FOREVER", ("FOREVER", str(FOREVER)), "'FOREVER'"),
    "KEEP_DELETED_CELLS": ("FALSE", ("FALSE",), "'FALSE'"),
    "NEW_VERSION_BEHAVIOR": ("FALSE", ("FALSE",), "'false'"),
}
#: A table's attribute, and its values with which HBase acknowledges what it has not yet written, or never writes, to
#: its log.
DURABILITY = "DURABILITY"
LOSING = ("ASYNC_WAL", "SKIP_WAL")
#: By which the clocks of HBase's servers may be apart, ms.
_MARGIN = MARGIN // timedelta(milliseconds=1)


def shape_of(descriptor: Descriptor, families: Iterable[str]) -> str:
    """The settings of *families* by which HBase hides or loses cells, as text: what was read under one shape says
    nothing under another.
    """
    described = [
        f"{family}: " + " ".join(f"{name}={_value(descriptor, family, name)}" for name in _OPEN)
        for family in sorted(families)
    ]
    return "; ".join([*described, f"DURABILITY={descriptor.attributes.get('DURABILITY', 'USE_DEFAULT')}"])


def hiding(descriptor: Descriptor, families: Iterable[str]) -> list[str]:
    """One sentence for each of *families* that does not show all it holds: which settings, and the statement that mends
    them.
    """
    found = []
    for family in sorted(families):
        values = {name: _value(descriptor, family, name) for name in _OPEN}
        wrong = {name: value for name, value in values.items() if value.upper() not in _OPEN[name][1]}
        if wrong:
            described = ", ".join(f"{name} => {value}" for name, value in wrong.items())
            mended = ", ".join(f"{name} => {_OPEN[name][2]}" for name in wrong)
            found.append(
                f"family {family} has {described}, so HBase hides cells of it; in HBase's shell: "
                f"alter '{descriptor.table}', {{NAME => '{family}', {mended}}}"
            )
    return found


def _value(descriptor: Descriptor, family: str, name: str) -> str:
    """A family's setting; HBase's own default where the descriptor is silent."""
    return descriptor.families.get(family, {}).get(name, _OPEN[name][0])


def losing(descriptor: Descriptor) -> str:
    """Why the death of a region server takes proofs from the table, and what mends it; empty where it takes none.

    A client that had its shadow cells acknowledged removes its commit entry. If the shadow cells go with the server, a
    committed cell looks as an orphan does.
    """
    durability = _losing(descriptor)
    if not durability:
        return ""
    return (
        f"it has DURABILITY => {durability}: with a region server die shadow cells that were acknowledged, whose "
        "commit entries are gone, so that nothing found proves nothing; in HBase's shell: alter "
        f"'{descriptor.table}', DURABILITY => 'SYNC_WAL'; or, where what a crash took may be taken for never "
        f"committed, as its readers do, say tables: {{{descriptor.table}: {{accept_durability: true}}}}"
    )


def _losing(descriptor: Descriptor) -> str:
    """The durability of a table whose servers may lose what they acknowledged; empty: it has another."""
    durability = descriptor.attributes.get(DURABILITY, "").upper()
    return durability if durability in LOSING else ""


def losing_entries(descriptors: Iterable[Descriptor], commit_table: str) -> tuple[str, str]:
    """Why the death of a region server takes commits from the commit table, and what mends it; empty texts where it
    takes none.

    The oracle answers a client when HBase has acknowledged its commit entry, which is the only proof until the client
    has written all of its shadow cells.
    """
    durability = next((_losing(d) for d in descriptors if d.table == commit_table), "")
    if not durability:
        return "", ""
    fact = (
        f"the commit table {commit_table} has DURABILITY => {durability}: with a region server die commit entries that "
        "clients were told of, so that what committed counts as an orphan"
    )
    return fact, f"in HBase's shell: alter '{commit_table}', DURABILITY => 'SYNC_WAL'; then run again"


def change_of(settings: str, before: Entry | None, at: int) -> Change | None:
    """What of a table's *settings* its regions may not have yet; None: nothing, as far as is known.

    A setting that only one of the two shapes names is no change: a family that came is nowhere without its regions
    opened anew, which HBase's master sees to, and an older Lowtide compared less.

    Args:
        settings: the :func:`shape_of` all its families, as the master tells it now.
        before: the table as the last collection recorded it; None where that did not list it. A table of which nothing
            was recorded is taken at the master's word.
        at: when that collection began, ms by HBase's clock: what changed did so after it.
    """
    if before is None or not before.settings:
        return None
    old, new = _named(before.settings), _named(settings)
    changed = [f"{name} {old[name]} -> {value}" for name, value in new.items() if old.get(name, value) != value]
    return Change(at, ", ".join(changed)) if changed else before.change


def doubt_unopened(entry: Entry, change: Change, opened: Mapping[str, int]) -> Entry:
    """*entry*, doubted where a server may still run one of its regions by the settings of before *change*.

    Args:
        entry: as it is now.
        change: of :func:`change_of`.
        opened: by region, before which time its server cannot have read the settings, ms by the clock of HBase's
            master; 0 where that is not known.
    """
    # One that the alter itself had opened must not be taken for late, whichever of the two clocks is behind.
    late = sorted(region for region, at in opened.items() if at <= change.since - _MARGIN)
    if opened and not late:
        return entry
    which = (
        f"{len(late)} of its {len(opened)} regions, such as {late[0]}," if late else "its regions, as far as is known,"
    )
    table, since = entry.table, moment_text(from_millis(change.since))
    why = (
        f"its settings changed after {since} ({change.what}), and {which} were not opened since: their servers hide "
        f"and lose cells by the settings of before. Wait until the alter is through (in HBase's shell: alter_status "
        f"'{table}'). One that was told not to reopen regions (REOPEN_REGIONS) never is: disable '{table}', then "
        f"enable '{table}'"
    )
    return replace(entry, change=change).doubted(why)


def _named(shape: str) -> dict[str, str]:
    """The settings of a :func:`shape_of`, by name and family."""
    found = {}
    for clause in shape.split("; "):
        family, _, settings = clause.rpartition(": ")
        for setting in settings.split(" "):
            name, _, value = setting.partition("=")
            found[f"{name} of family {family}" if family else name] = value
    return found
