"""What the owner of a store should know before anything is cleaned: rules over table descriptors and marks. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from lowtide.survey.findings import Notice, Severity
from lowtide.tables.inventory import OMID_COMPACTOR, Descriptor, Entry, Kind, has_compactor, is_phoenix
from lowtide.tables.settings import ALL_VERSIONS, FOREVER
from lowtide.values.text import age_text

#: A low watermark that is older stands still, for all that cleaning can do: what began since cannot be judged.
OLD_WATERMARK_SECONDS = 24 * 3600


def table_notices(entry: Entry, descriptor: Descriptor) -> list[Notice]:
    """What to know about one table that may hold cells of transactions."""
    name, found = entry.table, []
    # To call a table plain is refused where it bears a mark.
    may_be_plain = entry.kind is Kind.UNMARKED
    if entry.doubt:
        found.append(
            Notice(
                Severity.CAUTION,
                name,
                f"{entry.doubt}: it is left alone, and nothing is pruned from the commit table beyond what is recorded "
                "of it",
                f"mend that, or say in the configuration: tables: {{{name}: {{kind: transactional}}}} or plain"
                if may_be_plain
                else "mend that",
            )
        )
    elif entry.kind is Kind.UNMARKED and entry.enabled:
        found.append(
            Notice(
                Severity.CAUTION,
                name,
                f"it has shadow cells in families {', '.join(sorted(entry.unmarked))} but no mark of Omid: it is not "
                "cleaned, and nothing is pruned from the commit table",
                f"say in the configuration what it is: tables: {{{name}: {{kind: transactional}}}} or plain",
            )
        )
    elif entry.unmarked and entry.enabled:
        found.append(
            Notice(
                Severity.CAUTION,
                name,
                f"its families {', '.join(sorted(entry.unmarked))} have shadow cells but no mark of Omid: they are not "
                "cleaned, and nothing is pruned from the commit table",
                f"give them the flag OMID_ENABLED, or say tables: {{{name}: {{kind: transactional}}}}",
            )
        )
    if not entry.enabled:
        found.append(
            Notice(
                Severity.CAUTION,
                name,
                "it is disabled: it cannot be read, nothing is pruned from the commit table beyond what is recorded of "
                "it, and no orphan is deleted anywhere, since it may hold the proof of a commit",
                f"enable {name}, or drop it"
                + (f", or say tables: {{{name}: {{kind: plain}}}}" if may_be_plain else ""),
            )
        )
    if entry.unfiltered:
        found.append(
            Notice(
                Severity.CAUTION,
                name,
                "it holds view indexes of Phoenix's, which are read without a read point: SQL through them shows rows "
                "that were never committed, until their orphans are deleted",
                f"lowtide run orphan_cleanup --table {name} --execute",
            )
        )
    if entry.kind is Kind.TRANSACTIONAL:
        found += [n for family in sorted(entry.families) for n in _family_notices(entry, family, descriptor)]
        found += _compactor_notices(name, descriptor)
    return found


def _family_notices(entry: Entry, family: str, descriptor: Descriptor) -> Iterable[Notice]:
    table, attributes = entry.table, descriptor.families.get(family, {})
    versions = attributes.get("VERSIONS", "1")
    if versions != str(ALL_VERSIONS):
        yield Notice(
            Severity.DANGER,
            table,
            f"family {family} keeps {versions} versions: HBase drops a committed version when that many newer ones are "
            "there, uncommitted ones included",
            _all_versions(entry, family, descriptor),
        )
    ttl = attributes.get("TTL", str(FOREVER))
    if ttl not in (str(FOREVER), "FOREVER"):
        yield Notice(
            Severity.DANGER,
            table,
            f"family {family} has a time to live of {ttl}: HBase drops cells by their timestamps, which are the "
            "oracle's, so at once with a counter and never with a world clock",
            f"in HBase's shell: alter '{table}', {{NAME => '{family}', TTL => 'FOREVER'}}",
        )


def _all_versions(entry: Entry, family: str, descriptor: Descriptor) -> str:
    """What makes a family keep every version: SQL for a table of Phoenix's, HBase's shell for what SQL cannot alter."""
    if is_phoenix(descriptor) and len(entry.names) == 1 and "DATA_TABLE_NAME" not in descriptor.attributes:
        return f"ALTER TABLE {entry.names[0]} SET VERSIONS={ALL_VERSIONS}"
    return f"in HBase's shell: alter '{entry.table}', {{NAME => '{family}', VERSIONS => {ALL_VERSIONS}}}"


def _compactor_notices(table: str, descriptor: Descriptor) -> Iterable[Notice]:
    if has_compactor(descriptor):
        phoenix = is_phoenix(descriptor)
        yield Notice(
            Severity.DANGER if phoenix else Severity.NOTE,
            table,
            "Omid's compactor is attached"
            + (
                ": on a table of Phoenix its major compactions lose committed rows (a key deleted and written again), "
                "while the indexes still show them"
                if phoenix
                else ": its major compactions collapse history up to the low watermark, and lose rows that were "
                "written again after a committed delete of their family"
            ),
            f"take {OMID_COMPACTOR} off the table before its next major compaction" if phoenix else "",
        )


def watermark_notices(low_watermark: int, age_seconds: float | None) -> Iterable[Notice]:
    """What the low watermark itself shows."""
    if low_watermark == 0:
        yield Notice(
            Severity.CAUTION,
            "",
            "the low watermark is 0: nothing can be judged yet",
            "a smaller conflictMapSize of the oracle lets it move",
        )
    elif age_seconds is not None and age_seconds > OLD_WATERMARK_SECONDS:
        yield Notice(
            Severity.CAUTION,
            "",
            f"the low watermark is {age_text(timedelta(seconds=age_seconds))} old: what was left since then cannot be "
            "cleaned yet",
            "it moves when written cells fall out of the oracle's conflict map: set a smaller conflictMapSize, or "
            "restart the oracle with a persistent timestamp store",
        )


def timestamp_store_notices(table: str, persisted: int | None, low_watermark: int) -> Iterable[Notice]:
    """Whether the oracle will remember its timestamps.

    Args:
        table: the oracle's timestamp table.
        persisted: the highest timestamp allotted, as stored there; None: no such table or row.
        low_watermark: as stored in the commit table.
    """
    remedy = (
        "check the oracle's timestampStoreModule: with the in-memory one, which is the default, a restart begins at 0 "
        "again and transactions become committed that were not; use DefaultHBaseTimestampStorageModule"
    )
    if persisted is None:
        yield Notice(
            Severity.CAUTION,
            "",
            f"{table} holds no timestamp: the oracle keeps its timestamps in ZooKeeper, or in memory only",
            remedy,
        )
    elif persisted < low_watermark:
        yield Notice(
            Severity.CAUTION,
            "",
            f"{table} holds {persisted}, less than the low watermark {low_watermark}: the oracle keeps its timestamps "
            "elsewhere by now, in ZooKeeper or in memory only",
            remedy,
        )
