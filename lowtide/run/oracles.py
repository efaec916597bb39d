"""Whose tables are whose, where HBase serves more than one oracle. Pure.

Every mark says "transactional", none says by which oracle. Judged by another's commit table a committed cell looks like
an orphan's.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowtide.config import Omid
from lowtide.tables.inventory import Descriptor, Entry, Kind, marked_families
from lowtide.values.text import names_text

#: Names that a message lists: whoever reads it must write them all into the configuration.
_LISTED = 20


def problems(omid: Omid, descriptors: Sequence[Descriptor], entries: Sequence[Entry]) -> list[str]:
    """What the configuration leaves open about whose tables are whose; where it leaves anything open, nothing may be
    judged.

    Args:
        omid: what it says.
        descriptors: of all tables but Lowtide's own and the configured oracle's.
        entries: what those tables are that are not another oracle's by the configuration.
    """
    families = {omid.commit_family, omid.watermark_family}
    others = [d.table for d in descriptors if families <= set(d.families)]
    foreign = [d for d in descriptors if omid.is_foreign(d.table)]
    found = []
    if both := [d.table for d in foreign if omid.is_named(d.table)]:
        found.append(
            f"omid.tables and omid.foreign both name {_named(both)}: a table is one oracle's; "
            "take it out of one of them"
        )
    if not others:
        if marked := [d.table for d in foreign if marked_families(d)[1]]:
            found.append(
                f"omid.foreign names {_named(marked)}, marked as transactional, and HBase has no commit table "
                f"but {omid.commit_table}. Take what is "
                "this oracle's out of omid.foreign; drop what is of an oracle that is gone, or take off its mark"
            )
        return found
    if unnamed := [name for name in others if not omid.is_foreign(name)]:
        found.append(
            f"beside {omid.commit_table} (omid.commit_table) HBase has another oracle's commit table, with families "
            f"{omid.commit_family} and {omid.watermark_family}: {_named(unnamed)}. {omid.commit_table} proves nothing "
            "of that oracle's tables, so nothing is judged until the configuration says whose tables are whose: name "
            f"{_named(unnamed)} and all of that oracle's tables in omid.foreign, those of {omid.commit_table}'s "
            "oracle in omid.tables. A copy that nobody uses can be dropped instead"
        )
    if undecided := [e.table for e in entries if e.kind is not Kind.PLAIN and not omid.is_named(e.table)]:
        found.append(
            f"HBase has another oracle's commit table, {_named(others)}, and neither omid.tables (this oracle's) nor "
            f"omid.foreign (the other's) names {_named(undecided)}; nothing is judged until each is named"
        )
    return found


def _named(names: Sequence[str]) -> str:
    return names_text(sorted(names), _LISTED)
