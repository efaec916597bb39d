"""The facts that Python, Spark and Java share, as ``contract/vectors.json`` has them: Python's reading.

``tests/spark/test_contract.py`` reads it for the column expressions, ``ContractTest.java`` for the connector.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from lowtide_spark.frames import jars, kinds
from lowtide_spark.frames.connector import UNKNOWN_TABLE, Connector, explained
from lowtide_spark.frames.store import Life
from lowtide_spark.frames.writing import _claims_json
from py4j.protocol import Py4JError

from lowtide.config import Config
from lowtide.errors import FormatError, HistoryError, StoreError, TableError, UsageError
from lowtide.health.reading import Reading
from lowtide.history import holding
from lowtide.history.advice import bucket
from lowtide.history.mark import EXPIRY_MARGIN, Hold
from lowtide.journal import life
from lowtide.store import rows
from lowtide.store.history import ANNOUNCED_FOR
from lowtide.store.records import Claim
from lowtide.store.rows import FAMILY, FORMAT
from lowtide.store.state import StateStore
from lowtide.tables import settings
from lowtide.tables.inventory import Change, Descriptor, Entry, Kind, classify, has_compactor, marked_families
from lowtide.values import formats
from lowtide.values.clock import EPOCH, WorldClock, clock_contradiction, on_world_clock, oracle_clock
from lowtide.values.text import number_and_time
from tests.unit.test_history import Connection
from tests.varints import encode_varint

ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "contract/vectors.json").read_text())
MS = timedelta(milliseconds=1)


def each(name: str) -> Any:
    """One test for each vector of that name."""
    return pytest.mark.parametrize("v", VECTORS[name], ids=lambda v: json.dumps(v, ensure_ascii=False)[:60])


def at(ms: int) -> datetime:
    return EPOCH + ms * MS


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A state table of nothing, as happybase shows it."""
    made = Connection()

    def check_and_put(_: Any, __: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        if made.held.get(row, {}).get(check[0]) != check[1]:
            return False
        made.put(row, dict([put]))
        return True

    monkeypatch.setattr(rows, "check_and_put", check_and_put)
    return made


@pytest.fixture
def store(connection: Connection) -> StateStore:
    return StateStore(connection, "LOWTIDE_STATE")


def test_the_connectors_number() -> None:
    """Python goes with the jar of the number that the connector's own test holds to what is agreed on."""
    assert VECTORS["contract"]["number"] == jars.CONTRACT


# -- Omid's bytes


def test_names() -> None:
    """The configuration ships the names that the connector looks for."""
    config, names = Config(), VECTORS["names"]
    assert (config.state.table, config.state.journal_table) == (names["state table"], names["journal"])
    found = (config.omid.commit_table, config.omid.commit_family, config.omid.watermark_family)
    assert found == (names["commit table"], names["commit family"], names["watermark family"])


def test_cells() -> None:
    """Rows, families and qualifiers of Omid's own cells and of Lowtide's."""
    assert {
        "low watermark row": formats.LOW_WATERMARK_ROW.hex(),
        "low watermark": formats.LOW_WATERMARK_QUALIFIER.hex(),
        "commit": formats.COMMIT_QUALIFIER.hex(),
        "invalid": formats.INVALID_QUALIFIER.hex(),
        "invalid value": formats.INVALID_VALUE.hex(),
        "own invalid value": formats.OWN_INVALID_VALUE.hex(),
        "decided": life.DECIDED.hex(),
        "state family": FAMILY.encode().hex(),
        "journal family": life.FAMILY.encode().hex(),
        "journal's own row": life.OWN_ROW.hex(),
    } == VECTORS["cells"]


@each("starts")
def test_starts(v: dict[str, Any]) -> None:
    """A timestamp belongs to the transaction that began at the multiple of 50 at or below it."""
    assert formats.base(v["timestamp"]) == v["start"]


@each("shadow qualifiers")
def test_shadow_qualifiers(v: dict[str, Any]) -> None:
    """Shadow qualifiers are made as Omid makes them."""
    name = v["qualifier"] * v.get("times", 1)
    shadow = v["shadow"] + name + v["after"] if "times" in v else v["shadow"]
    assert formats.shadow_qualifier(bytes.fromhex(name)).hex() == shadow


@each("longs")
def test_longs(v: dict[str, Any]) -> None:
    """Numbers of eight bytes."""
    assert formats.encode_long(v["number"]).hex() == v["bytes"]
    assert formats.decode_long(bytes.fromhex(v["bytes"])) == v["number"]


@each("varints")
def test_varints(v: dict[str, Any]) -> None:
    """Numbers of as many bytes as they need; what is none is refused."""
    data = bytes.fromhex(v["bytes"])
    if v["number"] is None:
        with pytest.raises(ValueError, match="not a commit entry's value"):
            formats.decode_varint(data)
    else:
        assert formats.decode_varint(data) == v["number"]
        assert encode_varint(v["number"]) == data


@each("commit keys")
def test_commit_keys(v: dict[str, Any]) -> None:
    """The commit table's rows: who asks by the start finds no other."""
    row, start = bytes.fromhex(v["row"]), v["start"]
    assert formats.parse_commit_key(row) == start
    assert start is None or formats.commit_key(start) == row


@each("commit entries")
def test_commit_entries(v: dict[str, Any]) -> None:
    """What a commit entry says."""
    data = bytes.fromhex(v["value"])
    if v["commit"] is None:
        with pytest.raises(ValueError, match="not a commit entry's value"):
            formats.decode_commit(v["start"], data)
    else:
        assert formats.decode_commit(v["start"], data) == v["commit"]


# -- the oracle's clock


def test_the_world_clock_begins_where_no_counter_gets() -> None:
    """And counts so many units a millisecond."""
    found = {"least": formats.WORLD_CLOCK_MIN, "units of a ms": formats.UNITS_PER_MILLI}
    assert found == VECTORS["world clock"]


@each("clocks")
def test_clocks(v: dict[str, Any]) -> None:
    """The oracle's clock, by the configuration and by its low watermark; an error where the two contradict each
    other.
    """
    kind, watermark = v["configured"], v["low watermark"]
    assert bool(clock_contradiction(kind, watermark)) == (v["world"] is None)
    if v["world"] is not None:
        assert on_world_clock(kind, watermark) is v["world"]
        reading = Reading(EPOCH, low_watermark=watermark, clock_kind=kind)
        assert isinstance(reading.clock, WorldClock) is v["world"]


@each("times of the world clock")
def test_times_of_the_world_clock(v: dict[str, Any]) -> None:
    """From a time to its timestamp."""
    assert WorldClock().timestamp(at(v["time"])) == v["timestamp"]


@each("told times")
def test_told_times(v: dict[str, Any]) -> None:
    """A time that is told of a timestamp is not before it; a counter's timestamp has none."""
    time = "" if v["time"] is None else f" ({at(v['time']).isoformat(sep=' ', timespec='milliseconds')})"
    assert number_and_time(v["timestamp"]) == f"{v['timestamp']}{time}"


def test_samples(connection: Connection, store: StateStore) -> None:
    """Times of an oracle that counts, by the samples of it, which are written as they are read."""
    vectors = VECTORS["samples"]
    for v in vectors["recorded"]:
        store.add_sample(at(int(v["row"].removeprefix("clock/"))), v["value"]["timestamp"])
    written = [{"row": row.decode(), "value": json.loads(cells[b"s:value"])} for row, cells in connection.held.items()]
    assert written == vectors["recorded"]
    clock = oracle_clock("incremental", 0, store.samples)
    assert [clock.timestamp(at(v["time"])) or None for v in vectors["asked"]] == [
        v["timestamp"] for v in vectors["asked"]
    ]


# -- holds and marks


@each("ages of reads")
def test_ages_of_reads(v: dict[str, Any]) -> None:
    """Under which number a read of an age is counted."""
    assert bucket(v["age"] * MS) == v["bucket"]


def test_a_read_is_counted_where_the_connector_counts(
    connection: Connection, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row a table, one column a bucket."""
    counted: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(connection, "counter_inc", lambda *cell: counted.append(cell), raising=False)
    v = VECTORS["counted read"]
    age = next(a["age"] for a in VECTORS["ages of reads"] if a["bucket"] == v["bucket"])
    store.count_read(v["table"], age * MS)
    assert counted == [(v["row"].encode(), b"s:" + v["column"].encode())]


def _hold(v: dict[str, Any]) -> Hold:
    about = {name: v[name] for name in ("id", "table", "timestamp", "owner", "reason")}
    return Hold(**about, taken=at(v["taken"]), expires=at(v["expires"]))


@each("holds")
def test_holds(v: dict[str, Any], connection: Connection, store: StateStore) -> None:
    """A hold's row and its JSON, to the byte: one that the connector wrote is let go of as one of ours."""
    stored = "".join(v["stored"]).encode()
    store.add_hold(_hold(v))
    assert connection.held == {v["row"].encode(): {b"s:value": stored}}
    assert store.holds(v["table"]) == [_hold(v)]
    assert store.drop_hold(_hold(v))


def test_the_life_of_a_hold() -> None:
    """How long one lasts beyond its last renewal, at most, and beyond its end, for the clocks of those who look."""
    v = VECTORS["life of a hold"]
    assert (holding.RENEWED_FOR, Config().defaults.hold_max_age) == (v["renewed for"] * MS, v["longest"] * MS)
    assert v["counts beyond its end"] * MS == EXPIRY_MARGIN


@pytest.mark.parametrize("v", VECTORS["life of a hold"]["renewals"])
def test_renewals_of_a_hold(
    v: dict[str, Any], connection: Connection, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never lasts longer after it was taken than ``hold_max_age``; the connector is told that too."""
    monkeypatch.setattr(holding, "connect", lambda _: nullcontext(connection))
    monkeypatch.setattr(StateStore, "server_time", lambda _: at(v["now"]))
    longest = v["longest"] * MS
    config = Config.model_validate({"tables": {"orders": {"hold_max_age": longest}}})
    held = Hold("h", "orders", 1000, "ann", "a read", at(v["taken"]), at(v["taken"] + 1))
    store.add_hold(held)
    assert holding.renew(config, held, min(holding.RENEWED_FOR, longest)).expires == at(v["expires"])
    assert holding.read_options(config, "orders")["holdMaxAgeMillis"] == str(v["longest"])


@pytest.mark.parametrize("v", VECTORS["announced marks"]["holds"])
def test_announced_marks(v: dict[str, Any], connection: Connection, store: StateStore) -> None:
    """An announced mark keeps holds below it away, until its run is taken for dead: then a hold takes its claim."""
    assert VECTORS["announced marks"]["for"] * MS == ANNOUNCED_FOR
    claim = json.dumps({"at": 1, "mark": v["announced"], "run": "gc"}).encode()
    connection.put(b"history/orders", {b"s:mark": json.dumps({"mark": v["applied"]}).encode(), b"s:intended": claim})
    held = Hold("h", "orders", v["timestamp"], "ann", "a read", at(1), at(2))
    now = at(1 + v["ago"])
    if v["stands"]:
        holding._check_mark(store, held, now)
    else:
        with pytest.raises(HistoryError):
            holding._check_mark(store, held, now)
    assert (store.history("orders").claim != claim) is v["overtakes"]


def test_the_connector_is_told_what_the_configuration_says() -> None:
    """The clock of the oracle, and how long a hold on the table that is read may last."""
    config = Config.model_validate(
        {
            "omid": {"clock": "incremental"},
            "defaults": {"hold_max_age": "2d"},
            "tables": {"orders": {"hold_max_age": "1h"}},
        }
    )
    assert holding.read_options(config)["clock"] == "incremental"
    assert holding.read_options(config)["holdMaxAgeMillis"] == str(2 * 86_400_000)
    assert holding.read_options(config, "orders")["holdMaxAgeMillis"] == str(3_600_000)


def test_a_hold_goes_by_the_clock_that_is_configured(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds are no timestamp of a world clock's oracle, also of one that has stored no low watermark yet."""
    monkeypatch.setattr(holding, "connect", lambda _: nullcontext(connection))
    monkeypatch.setattr(holding, "low_watermark", lambda *_: 0)
    config = Config.model_validate({"omid": {"clock": "world"}})
    with pytest.raises(UsageError, match="Milliseconds take six more digits"):
        holding.take(config, "orders", 1_700_000_000_000, owner="ann", reason="a read", lasting=timedelta(hours=1))


# -- the state table and the journal


def test_what_is_read_of_the_state(connection: Connection, store: StateStore) -> None:
    """Rows of the state table that the connector reads as well."""
    read = VECTORS["state"]["read"]
    for v in VECTORS["state"]["rows"]:
        connection.put(v["row"].encode(), {f"s:{v['column']}".encode(): json.dumps(v["value"]).encode()})
    assert {table: store.history(table).applied for table in read["mark"]} == read["mark"]
    assert {table: store.mark_of_any(table) for table in read["mark of any table"]} == read["mark of any table"]
    assert store.numbered_anew() == read["numbered anew"]
    listed = {entry.table: entry for entry in store.inventory()}
    assert {t: listed[t].kind.value if t in listed else None for t in read["kind"]} == read["kind"]
    assert {t: listed[t].compactor for t in read["compactor"]} == read["compactor"]
    assert {t: sorted(listed[t].families) for t in read["families"]} == read["families"]
    connection.put(b"inventory", {b"s:value": json.dumps(VECTORS["state"]["inventory of format 1"]).encode()})
    assert [entry.kind for entry in store.inventory()] == [Kind.TRANSACTIONAL]


def test_what_is_written_to_the_state(
    connection: Connection, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, columns and keys as are read; the inventory and the journal to the value."""
    monkeypatch.setattr(StateStore, "server_time", lambda _: at(77))
    store.record_format()
    store.reset()
    store.apply_mark(store.intend("orders", 1049, "gc"), {"run": "gc", "held_by": []})
    store.remember_journal(horizon=100, pruned=900, stated=7)
    store.doubt_journal("it had a TTL")
    orders = Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), mark="OMID_ENABLED", bytes=1, compactor=True)
    orders = replace(orders, settings="f: TTL=9", change=Change(3, "TTL of family f 8 -> 9"))
    copy = Entry("copy", Kind.TRANSACTIONAL, True, frozenset("f"), mark="OMID_ENABLED", bytes=1, came_after=5)
    store.put_inventory([orders, Entry("notes", Kind.PLAIN, True, bytes=1), copy], 5, at=7)
    for v in VECTORS["state"]["rows"]:
        written = json.loads(connection.held[v["row"].encode()][f"s:{v['column']}".encode()])
        assert sorted(written) == sorted(v["value"]), v["row"]
        if v["row"] in ("inventory", "journal"):
            assert written == v["value"]
    assert VECTORS["state"]["format"] == FORMAT


def test_records_of_a_newer_lowtide_are_refused(connection: Connection, store: StateStore) -> None:
    """By the format that they say they have."""
    v = VECTORS["state"]["newer"]
    connection.put(v["row"].encode(), {f"s:{v['column']}".encode(): json.dumps(v["value"]).encode()})
    with pytest.raises(FormatError, match=f"knows formats up to {VECTORS['state']['format']}"):
        store.history("orders")


@each("journals")
def test_journals(v: dict[str, Any]) -> None:
    """Whether the journal is known to have all its rows."""
    known = life.Journal(**v["remembered"])
    seen = life.Observed(True, v["stated"], None, life.OwnRow(**v["said"]) if v["said"] else None)
    assert (not life.missing(known, seen) and not life.doubt(known, seen)) is v["whole"]


# -- tables, and what is written to them


@each("marks of tables")
def test_marks_of_tables(v: dict[str, Any]) -> None:
    """Which tables and families are transactions', by the marks of Omid and Phoenix and by the configuration."""
    table = Descriptor("t", True, {}, v["coprocessors"], v["families"])
    if "configured" in v:
        found = classify(table, Kind.TRANSACTIONAL, frozenset()).families
        assert sorted(found) == v["configured"]
    else:
        found = marked_families(table)[0]
    assert sorted(found) == v["transactional"]
    assert has_compactor(table) is v["compactor"]


@each("settings that hide")
def test_settings_that_hide(v: dict[str, Any]) -> None:
    """Settings by which HBase keeps cells from readers."""
    family = {name: value for name, value in v.items() if name != "hide"}
    said = "".join(settings.hiding(Descriptor("t", True, {}, (), {"f": family}), ["f"]))
    assert re.findall(r"([A-Z_]+) =>", said.partition(", so HBase")[0]) == v["hide"]


@each("claims")
def test_claims(v: dict[str, Any]) -> None:
    """What a writer goes by, as it is handed over."""
    if "life" in v:
        claim: Claim | Life = Life(**v["life"])
    else:
        bytes_of = {name: bytes.fromhex(v["cell"][name]) for name in ("row", "value")}
        claim = Claim(**{**v["cell"], **bytes_of})
    assert json.loads(_claims_json([claim])) == [v["json"]]


def test_errors_that_are_known_by_their_text() -> None:
    """What the connector says of a table that is not there is told from other errors."""
    assert VECTORS["errors"]["a read of a table that is not there"] == UNKNOWN_TABLE
    text = f"java.lang.IllegalArgumentException: {UNKNOWN_TABLE}orders. Check the name"
    assert isinstance(explained(Exception(text), "orders"), TableError)
    assert not isinstance(explained(Exception("java.io.IOException: no answer"), "orders"), TableError)


def test_kinds_and_operations() -> None:
    """The jobs know no kind and ask for no operation that the connector has not."""
    assert {*kinds.CELL_KINDS, kinds.SHADOW, kinds.UNKNOWN, kinds.END_OF_RANGE} <= set(VECTORS["kinds"])
    programs = "".join(file.read_text() for file in (ROOT / "spark_apps").rglob("*.py"))
    asked = set(re.findall(r'F\.lit\("(\w+)"\)\.alias\("op"\)', programs))
    assert len(asked) > 4
    assert asked <= set(VECTORS["operations"])


_NO_METHOD = "Method look([class java.util.HashMap, class java.lang.String, class java.util.ArrayList]) does not exist"


@pytest.mark.parametrize(
    "error",
    [
        Py4JError(f"An error occurred while calling z:Catalog.look. Trace:\npy4j.Py4JException: {_NO_METHOD}"),
        TypeError("'JavaPackage' object is not callable"),
    ],
)
def test_a_jar_of_an_older_lowtide_is_named(error: Exception) -> None:
    """Whether it lacks the class, or what the class is asked for: to Java it is a method that does not exist."""

    def look(*_: object) -> str:
        raise error

    connector = Connector.__new__(Connector)
    classes = SimpleNamespace(Catalog=SimpleNamespace(look=look))
    connector.__dict__ |= {"_classes": classes, "_java_options": {}, "spark": MagicMock()}
    with pytest.raises(StoreError, match="the connector's jar is of an older Lowtide: put this version's in its place"):
        connector._listed("regions", "orders", "payments")


def test_what_the_store_says_is_told_without_javas_class() -> None:
    """Nor with what the connector was asked for."""
    said = "java.io.UncheckedIOException: Cannot read the view tables: HBase has tables that it does not list"
    assert str(explained(Exception(said), None)) == "cannot read the store: HBase has tables that it does not list"
