"""What does not move is named with its reason, and doing what the remedy says makes it move."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from ledger_kit import Books
from scene import Scene
from typer.testing import CliRunner

from lowtide.cleaning.commit_count import CommitCount, counted_figures
from lowtide.cleaning.facts import Blocker, by_reason
from lowtide.cli.app import app
from lowtide.config import load
from lowtide.health import RECURRING
from lowtide.health.reader import STUCK, read, read_through
from lowtide.history.holding import take
from lowtide.history.mark import Hold
from lowtide.lab.stack import free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.ledger import init, user_id
from lowtide.ledger.model import Entry as Open
from lowtide.ledger.model import Table, transaction_id
from lowtide.ledger.steps import Put
from lowtide.ledger.store import Tables
from lowtide.run.summary import Summary, TableReport
from lowtide.store.gateway import connect
from lowtide.store.records import Bound
from lowtide.store.state import StateStore
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import EPOCH, millis
from lowtide.values.formats import encode_long, shadow_qualifier

pytestmark = pytest.mark.usefixtures("swept")

Job = Callable[..., Outcome]
STATE = {"table": "LOWTIDE_HEALTH"}


@dataclass
class Desk:
    """Someone who asks ``explain``, and does what it says."""

    config: Path
    write: Callable[..., Path]
    job: Job
    connection: Any
    sections: dict[str, Any] = field(default_factory=dict)

    def configure(self, **sections: Any) -> None:
        """Change sections of the configuration for good."""
        self.sections |= sections
        self.config = self.write(**{"state": STATE, **self.sections})

    def ask(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of a command."""
        result = CliRunner().invoke(app, [*arguments, "--json", "--config", str(self.config)])
        assert result.stdout, f"{result.exception!r}: {result.output}"
        return result.exit_code, json.loads(result.stdout)

    def findings(self, table: str) -> dict[str, dict[str, Any]]:
        """What ``explain`` finds about *table*, by cause."""
        _, said = self.ask("explain", table)
        return {f["cause"]: f for f in said["findings"] if table in f["tables"]}

    def follow(self, finding: dict[str, Any]) -> None:
        """Run the finding's commands as they are written."""
        for command in finding["commands"]:
            self._do(shlex.split(command))
        assert finding["commands"]

    def _do(self, words: list[str]) -> None:
        if words[0] == "echo":
            (verb, table) = shlex.split(words[1])
            assert verb == "enable"
            self.connection.enable_table(table)
        elif words[:2] == ["lowtide", "run"]:
            assert self.job(words[2], *words[3:], config=self.config).code == 0
        else:
            result = CliRunner().invoke(app, [*words[1:], "--config", str(self.config)], input="y\n")
            assert result.exit_code == 0, result.output

    def collect(self) -> None:
        assert self.job("watermark_collection", "--execute", config=self.config).code == 0


@pytest.fixture
def desk(configure: Callable[..., Path], job: Job) -> Iterator[Desk]:
    """With records of its own: those of other tests tell of other stores."""
    path = configure(state=STATE)
    with connect(load(path).hbase.thrift) as connection:
        yield Desk(path, configure, job, connection)
        if STATE["table"].encode() in connection.tables():
            connection.delete_table(STATE["table"], disable=True)


def test_doing_what_the_remedy_says_resolves_it(desk: Desk, scene: Scene, omid: OmidClient) -> None:
    """Each blocker in turn: never collected, never cleaned, left behind, of unknown standing, disabled, over budget."""
    table = scene.table(splits=(b"m",))
    scene.orphan(table)
    scene.orphan(table, row=b"z")
    omid.advance_watermark()
    desk.configure(defaults={"mode": "execute", "budget": {"share": 1.0}})

    code, said = desk.ask("status")
    assert (code, said["findings"][0]["cause"]) == (3, "never-collected")
    desk.follow(said["findings"][0])

    found = desk.findings(table)
    assert set(found) == {"never-cleaned"}
    assert "1 more of its regions" in found["never-cleaned"]["why"]
    desk.follow(found["never-cleaned"])
    assert desk.findings(table) == {}

    omid.advance_watermark()
    desk.collect()
    found = desk.findings(table)
    assert set(found) == {"behind"}
    desk.follow(found["behind"])
    assert desk.findings(table) == {}
    assert desk.ask("status")[0] == 0

    legacy = scene.table(omid_enabled=False)
    omid.put(legacy, b"r", b"a", b"q", 50, b"v")
    omid.put(legacy, b"r", b"a", shadow_qualifier(b"q"), 50, encode_long(100))
    desk.collect()
    found = desk.findings(legacy)
    assert (set(found), found["unmarked"]["setting"]) == ({"unmarked"}, f"tables.{legacy}.kind")
    desk.configure(tables={legacy: {"kind": "transactional"}})
    desk.follow(found["unmarked"])
    assert desk.findings(legacy) == {}

    desk.connection.disable_table(table)
    omid.advance_watermark()
    desk.collect()
    found = desk.findings(table)
    assert set(found) == {"disabled"}
    desk.follow(found["disabled"])
    assert desk.findings(table) == {}

    for row in (b"a", b"z"):
        scene.orphan(table, row=row)
    omid.advance_watermark()
    desk.configure(tables={legacy: {"kind": "transactional"}, table: {"budget": {"rows": 1, "always": 0}}})
    assert desk.job("orphan_cleanup", "--table", table, "--execute", config=desk.config).code == 1
    found = desk.findings(table)
    assert "budget.rows" in found["failed"]["why"]
    assert desk.ask("status")[0] == 4
    desk.configure(tables={legacy: {"kind": "transactional"}})
    desk.follow(found["failed"])
    assert desk.findings(table) == {}


def test_what_keeps_history_back_and_what_lets_it_go(desk: Desk, scene: Scene, omid: OmidClient) -> None:
    """Never removed, kept back by the prune bound, by a hold: each is named, and following the remedy moves the mark
    on.
    """
    table = scene.table()
    for value in (b"old", b"new"):
        scene.committed(table, value=value)
    omid.advance_watermark()
    young = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    desk.configure(defaults={"mode": "execute", **young})
    desk.collect()

    def findings() -> dict[str, dict[str, Any]]:
        return {cause: f for cause, f in desk.findings(table).items() if cause.startswith("history")}

    def history() -> dict[str, Any]:
        return next(h for h in desk.ask("explain", table)[1]["history"] if h["table"] == table)

    desk.follow(desk.findings(table)["never-cleaned"])
    never = findings()["history-never"]
    assert never["setting"] == f"tables.{table}.history_mode"
    assert (history()["applied"], history()["removed"]) == (0, None)
    desk.configure(defaults={"mode": "execute", "history_mode": "execute", **young})
    desk.follow(never)
    assert findings() == {}
    found = history()
    assert found["applied"] > 0
    assert found["removed"]["versions"] > 0
    assert found["reclaimable"] is None

    begun = [omid.begin() for _ in range(3)][-1]  # above the bound, which reaches to the next timestamp
    omid.advance_watermark()
    held = take(load(desk.config), table, begun, owner="ann", reason="month end", lasting=timedelta(hours=1))
    for _ in range(2):
        scene.committed(table, value=b"newer")
    omid.advance_watermark()
    desk.collect()
    kept = findings()
    assert set(kept) == {"history-blocked"}  # what holds the bound is behind the hold
    desk.follow(kept["history-blocked"])
    (finding,) = (f for c, f in findings().items() if c == "history-held")
    assert "ann holds it until" in finding["why"]
    assert held.id in desk.ask("status")[1]["holds"][0]["id"]
    desk.follow(finding)
    assert findings() == {}
    assert history()["applied"] > begun


def test_what_is_wrong_with_the_ledger(desk: Desk) -> None:
    """Never repaired, money made behind its back, transactions that contradict themselves: named, and resolved by the
    remedy.
    """
    desk.configure(defaults={"mode": "execute"}, ledger={"prefix": "seen_", "grace": "0s", "allow_short_grace": True})
    books = Books(desk.config)
    init(books.config)
    with books.open() as book:
        book.add_user("ann")
        book.add_user("bob")
        paid = book.transfer("issuer", "ann", 100)
    assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")

    def findings() -> dict[str, dict[str, Any]]:
        return desk.findings("seen_transactions")

    def ledger() -> dict[str, Any]:
        return dict(desk.ask("status")[1]["ledger"])

    assert (ledger()["stuck"], ledger()["settled"], set(findings())) == (1, None, {"never-repaired"})
    desk.follow(findings()["never-repaired"])
    assert (findings(), ledger()["stuck"]) == ({}, 0)
    assert (ledger()["money"]["checked"], ledger()["money"]["wrong"]) == (2, 0)

    record = f"{user_id('ann')}/{paid.id}".encode()
    records = desk.connection.table(f"seen_{Table.RECORDS}")
    records.put(record, {b"l:amount": b"1000"})
    assert desk.job("transaction_repair", "--full", "--execute", config=desk.config).code == 1
    found = findings()
    assert set(found) == {"money"}
    assert paid.id in found["money"]["why"]
    records.put(record, {b"l:amount": b"100"})
    desk.follow(found["money"])
    assert findings() == {}

    assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    (entry,) = books.entries()
    transactions = desk.connection.table(f"seen_{Table.TRANSACTIONS}")
    sender = transactions.row(entry.id.encode())[b"l:sender"]
    transactions.delete(entry.id.encode(), columns=[b"l:sender"])
    assert desk.job("transaction_repair", "--execute", config=desk.config).code == 1
    desk.configure(health={"unsettled_after": "0s"})
    found = findings()
    assert set(found) == {"failed", "unsettled"}
    assert "cannot be ended" in found["unsettled"]["why"]
    transactions.put(entry.id.encode(), {b"l:sender": sender})
    desk.follow(found["unsettled"])
    desk.configure(health={})
    assert (findings(), ledger()["stuck"]) == ({}, 0)


def test_what_stands_still_and_what_does_not_run(desk: Desk, scene: Scene, omid: OmidClient, tmp_path: Path) -> None:
    """A low watermark that rests, a job that is overdue, a gateway and an oracle that are down."""
    scene.table()
    omid.advance_watermark()
    desk.configure(health={"stuck_after": "0s"})
    desk.collect()

    def causes() -> dict[str, dict[str, Any]]:
        return {f["cause"]: f for f in desk.ask("explain")[1]["findings"]}

    assert "conflictMapSize" in causes()["low-watermark-still"]["remedy"]
    omid.advance_watermark()
    assert "low-watermark-still" not in causes()

    config = load(desk.config)
    old = Summary("orphan_cleanup", "long ago", True, millis(datetime.now(UTC) - timedelta(days=3)))
    StateStore(desk.connection, config.state.table).add_run(old.to_json())
    overdue = [f for f in desk.ask("explain")[1]["findings"] if f["cause"] == "overdue"]
    assert [f["what"] for f in overdue] == ["Nothing cleans", "Nothing prunes the commit table"]
    for finding in overdue:
        desk.follow(finding)
    assert "overdue" not in causes()

    nowhere = free_ports_config(tmp_path).thrift_port
    there = desk.config
    desk.config = desk.write(state=STATE, hbase={"thrift": {"port": nowhere}})
    code, said = desk.ask("status")
    assert (code, said["level"], said["findings"][0]["cause"]) == (1, "unknown", "gateway-down")
    assert f"127.0.0.1:{nowhere}" in said["sentence"]
    desk.config = desk.write(state=STATE, omid={"oracle": [f"127.0.0.1:{nowhere}"]})
    code, said = desk.ask("status")
    assert (code, said["findings"][0]["cause"]) == (4, "oracle-down")
    desk.config = there
    unknown = CliRunner().invoke(app, ["explain", "nosuchtable", "--config", str(desk.configure() or desk.config)])
    assert "nosuchtable" in str(unknown.exception)


def test_what_was_only_planned_begun_or_forgotten(desk: Desk, scene: Scene, omid: OmidClient) -> None:
    """A dry run, a table of the configuration that is not there, a mark of history that was announced and never
    applied, an entry in the ledger's index that is none, a low watermark that went back: named, and resolved by the
    remedy."""
    table = scene.table()
    scene.committed(table)
    omid.advance_watermark()
    ledger = {"prefix": "unread_", "grace": "0s", "allow_short_grace": True}
    acting = {"mode": "execute", "history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    desk.configure(defaults={**acting, "mode": "dry-run"}, ledger=ledger, tables={"gone": {"kind": "plain"}})
    desk.collect()
    desk.follow(desk.findings(table)["never-cleaned"])
    dry = desk.findings(table)["dry-run"]
    assert "set defaults.mode to execute" in dry["remedy"] or f"tables.{table}.mode" in dry["remedy"]
    absent = desk.findings("gone")["absent"]
    assert absent["setting"] == "tables.gone"
    desk.configure(defaults=acting, ledger=ledger, tables={})
    assert set(desk.findings(table)) == {"history-never"}
    assert "absent" not in {f["cause"] for f in desk.ask("explain")[1]["findings"]}

    records = desk.connection.table(STATE["table"])
    state = StateStore(desk.connection, STATE["table"])
    state.intend(table, omid.watermark(), "killed")
    (column, value) = next(
        (c, v) for c, v in records.row(f"history/{table}".encode()).items() if c.endswith(b"intended")
    )
    long_ago = {**json.loads(value), "at": millis(datetime.now(UTC) - timedelta(hours=2))}
    records.put(f"history/{table}".encode(), {column: json.dumps(long_ago, sort_keys=True).encode()})
    begun = desk.findings(table)["history-unfinished"]
    assert "run killed ended in between" in begun["why"]
    desk.follow(begun)
    assert "history-unfinished" not in desk.findings(table)

    init(load(desk.config))
    index = desk.connection.table(f"unread_{Table.OPEN}")
    index.put(b"000000000000001/nobody's", {b"l:transaction": b"x"})
    broken = desk.findings("unread_transactions")["ledger-broken"]
    assert "nobody's" in broken["why"]
    index.delete(b"000000000000001/nobody's")
    desk.follow(broken)
    assert desk.findings("unread_transactions") == {}

    before = omid.watermark() + 100
    state.record_low_watermark(before)
    code, said = desk.ask("status")
    assert (code, said["findings"][0]["cause"]) == (4, "low-watermark-back")
    while omid.advance_watermark() < before:  # what a reset is refused without
        pass
    desk.follow(said["findings"][0])
    code, said = desk.ask("status")
    assert (code, said["findings"][0]["cause"]) == (3, "never-collected"), "the records are forgotten, and begin anew"


def test_pruning_counts_the_commit_table(desk: Desk, scene: Scene, omid: OmidClient) -> None:
    """Entries and marks apart, those too that cannot be pruned yet, by a dry run too; what is left is counted where
    something went.
    """

    def there() -> tuple[int, int]:
        rows = omid.commit_table().values()
        return sum(r.commit is not None for r in rows), sum(r.invalid for r in rows)

    table = scene.table()
    scene.crashed_after_commit(table)
    scene.orphan(table)
    omid.advance_watermark()
    assert desk.job("orphan_cleanup", "--execute", config=desk.config).code == 0
    scene.crashed_after_commit(table, row=b"beyond the bound")
    before = there()
    dry = desk.job("commit_table_pruning", "--grace", "0s", config=desk.config)
    assert dry.summary["figures"] == {"commit entries before": before[0], "invalidation marks before": before[1]}
    done = desk.job("commit_table_pruning", "--grace", "0s", "--execute", config=desk.config)
    assert done.totals["pruned"] > 0
    left = there()
    assert 0 < left[0] < before[0]
    assert counted_figures(done.summary["figures"]) == left
    counts = StateStore(desk.connection, STATE["table"]).commit_counts()
    assert [(c.entries, c.marks) for c in counts] == [before, before, left]
    said = desk.ask("status")[1]["commit_table"]
    assert (said["entries"], said["marks"]) == left


def test_a_look_costs_at_most_23_small_reads(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """For 50 tables with 10,000 regions that were never cleaned, and all the runs that are read."""
    desk.configure(ledger={"prefix": "counted_"})
    config = load(desk.config)
    state = StateStore(desk.connection, config.state.table)
    state.create()
    state.record_low_watermark(1)
    names = [f"table{n:02}" for n in range(50)]
    now = datetime.now(UTC)
    for name in names:
        regions = [
            {"region": "0" * 32, "start": f"{n:032x}", "stop": f"{n + 1:032x}", "watermark": n} for n in range(200)
        ]
        state.put_watermarks(name, {"at": millis(now), "low_watermark": 1000, "regions": regions})
    state.put_inventory([Entry(name, Kind.TRANSACTIONAL, True, frozenset({"a"})) for name in names])
    blockers = [Blocker(name, f"r{n}", "[a, b)", 0, "never cleaned", "clean") for name in names for n in range(200)]
    for n in range(70):
        at = now - timedelta(hours=n)
        if n < 3:
            state.add_bound(Bound(at, 0, tuple(by_reason(blockers))))
        reports = [TableReport(name) for name in names]
        if n == 69:
            reports.append(TableReport("failed long ago", problems=["it broke"]))
        state.add_run(Summary(list(RECURRING)[n % 3], f"r{n}", True, millis(at), tables=reports).to_json())
        state.intend(names[n % 50], 49 + 50 * n, f"r{n}")
        state.add_hold(Hold(f"h{n}", names[n % 50], n, "ann", "month end", now, now + timedelta(hours=1)))
    init(config)
    tables = Tables(desk.connection, config.ledger.prefix)
    begun = millis(now - timedelta(hours=2))
    for n in range(STUCK + 1):
        entry = Open(begun + n, transaction_id(user_id("ann"), n + 1), f"{n:016x}")
        tables(Put(Table.OPEN, entry.row, entry.cells))
    for n in range(210):
        state.add_commit_count(CommitCount(now - timedelta(hours=n), n, 2 * n))
    reads: Counter[str] = Counter()
    with connect(config.hbase.thrift) as connection:
        send = connection.client._send

        def counting(name: str, *arguments: Any, **more: Any) -> Any:
            reads[name] += 1
            return send(name, *arguments, **more)

        monkeypatch.setattr(connection.client, "_send", counting)
        seen = read_through(connection, config, now)
    assert sum(len(w["regions"]) for w in seen.watermarks.values()) == 10_000
    assert len(seen.runs) == 60
    assert seen.more_runs
    assert (len(seen.histories), len(seen.holds)) == (50, 70)
    assert [(c.entries, c.marks) for c in seen.commit_counts] == [(n, 2 * n) for n in range(199, -1, -1)]
    assert abs(seen.commit_counts[-1].at - now) < timedelta(milliseconds=1)
    assert seen.ledger is not None
    assert (seen.ledger.stuck, seen.ledger.more, seen.ledger.oldest) == (
        STUCK,
        True,
        EPOCH + timedelta(milliseconds=begun),
    )
    counted = {n: c for n, c in reads.items() if n not in ("scannerOpenWithScan", "scannerClose")}
    assert 15 < sum(counted.values()) + 1 <= 23, counted  # and one to see that the gateway answers
    assert read(config).watermarks == seen.watermarks
    failed = [t["table"] for f in seen.outcomes.failing for t in f["tables"]]
    assert failed == ["failed long ago"], "of no run that was read"
    done = Summary("orphan_cleanup", "done", True, millis(now), tables=[TableReport("failed long ago")])
    state.add_run(done.to_json())
    assert read(config).outcomes.failing == ()
