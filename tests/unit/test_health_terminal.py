"""``lowtide status`` and ``lowtide explain`` of a store with history, holds and a ledger: every part is printed, and
in the JSON.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lowtide.cleaning.commit_count import CommitCount
from lowtide.cleaning.facts import NEVER
from lowtide.cli.app import app
from lowtide.errors import FormatError, GatewayError
from lowtide.health import Reading
from lowtide.store.records import Bound
from lowtide.values.clock import millis
from tests.unit.test_health import DAY, HOUR, NOW, blocker, healthy
from tests.unit.test_health_history import gc_run, hold, mark, store
from tests.unit.test_health_ledger import ledger, repair


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lowtide.yaml"
    path.write_text("defaults: {mode: execute, history_mode: execute}\n")
    return path


def ask(monkeypatch: pytest.MonkeyPatch, config: Path, seen: Reading, *arguments: str) -> Result:
    for command in ("health", "history"):
        monkeypatch.setattr(f"lowtide.cli.{command}.read", lambda _: seen)
    monkeypatch.setenv("COLUMNS", "400")
    return CliRunner().invoke(app, [*arguments, "--config", str(config)])


def whole() -> Reading:
    """A store with everything that there is to tell of."""
    runs = (gc_run(HOUR, deleted=70, bytes_removed=7168), repair(HOUR), *healthy().runs)
    seen = store(holds=(hold(),), runs=runs, ledger=ledger(), histories=(mark("orders"), mark("users", None)))
    counts = (CommitCount(NOW - DAY, 1, 2), CommitCount(NOW - HOUR, 84, 37))
    return replace(seen, listed=seen.listed | {"ledger_transactions"}, commit_counts=counts)


def test_status_says_it_in_the_terminal(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """A line a table with what keeps its history back, the holds, the ledger, the last runs."""
    found = ask(monkeypatch, config, whole(), "status")
    said = " ".join(found.output.split())
    assert found.exit_code == 0
    assert "│ orders │ execute │ 2026-03-03 12:00:00.001 UTC │ hold h1 of ann: month end." in said
    assert "│ users │ execute │ never │" in said
    assert "7.0 KiB" in said
    assert "│ orders │ h1 │ 2026-03-01 12:00:00.000 UTC │ ann │ month end. │" in said
    assert "Commit table 84 entries and 37 invalidation marks, as counted 1 hour ago" in said
    assert "Ledger, all transactions are over that began before: 2026-03-10 11:40 UTC, 20 minutes ago" in said
    assert "Ledger, money: adds up; 40 finished transactions were checked" in said
    assert "history_gc: done 1 hour ago transaction_repair: done 1 hour ago" in said
    plain = ask(monkeypatch, config, healthy(), "status").output
    assert "Ledger" not in plain
    assert "Holds" not in plain
    assert "Commit table" not in plain


def test_status_says_of_each_table_all_that_is_known(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """With --tables: SQL's names, regions at 0, marks as numbers that other commands take, and everything that holds
    the bound.
    """
    held = (
        blocker("users", "is disabled", region=None),
        blocker("orders", NEVER, since=millis(NOW - HOUR), regions=3),
    )
    orders, users = healthy().inventory
    inventory = (replace(orders, names=("SHOP.ORDERS",)), users)
    reading = healthy(bounds=(Bound(NOW - HOUR, 0, held, NOW - DAY),), inventory=inventory)
    found = ask(monkeypatch, config, reading, "status", "--tables")
    lines = " ".join(found.output.split())
    assert found.exit_code == ask(monkeypatch, config, reading, "status").exit_code
    assert "│ orders (SHOP.ORDERS) │ execute │ 2 │ 0 │ 0 │ 999 │ 50 │" in lines
    assert "Low watermark: 1049 Prune bound: 0, computed 2026-03-10 11:00 UTC, since 2026-03-09 12:00 UTC" in lines
    assert "held by users: is disabled. Remedy: do it" in lines
    assert f"held by orders [a, b) and 2 more regions: {NEVER}. Remedy: do it" in lines
    nothing = ask(monkeypatch, config, healthy(watermarks={}), "status", "--tables").output
    assert "lowtide run watermark_collection --execute" in nothing


def test_a_hold_of_no_time_at_all_does_not_end_status(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """It is listed with its number and keeps nothing back."""
    seen = replace(whole(), holds=(hold(timestamp=99999999999999999999999),))
    for command in ("status", "explain"):
        assert ask(monkeypatch, config, seen, command).exit_code == 0
    assert "99,999,999,999,999,999,999,999" in ask(monkeypatch, config, seen, "status").output


def test_marks_are_told_of_all_tables_with_what_keeps_them_back_now(
    monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    """As status says it, not as the last run found it; a table that never lost history is told of too."""
    found = ask(monkeypatch, config, whole(), "history", "marks")
    said = " ".join(found.output.split())
    assert found.exit_code == 0
    assert (
        "│ orders │ 1772539200000000049 │ 2026-03-03 12:00:00.001 UTC │ 2026-03-10 11:00:00 │ r1 │ hold h1 of ann"
        in said
    )
    assert "│ users │ never │ │ │ │ history_max_age 7d (tables.users.history_max_age) │" in said
    nothing = ask(monkeypatch, config, Reading(NOW), "history", "marks").output
    assert "lowtide run watermark_collection --execute" in nothing
    down = ask(monkeypatch, config, Reading(NOW, unreachable="nobody answers at h:1"), "history", "marks")
    assert isinstance(down.exception, GatewayError)
    assert "nobody answers at h:1; start the Thrift gateway" in str(down.exception)
    newer = Reading(NOW, unreachable="the records have format 9; this is Lowtide 1", newer=True)
    refused = ask(monkeypatch, config, newer, "history", "marks").exception
    assert isinstance(refused, FormatError)
    assert "this is Lowtide 1. Upgrade it" in str(refused)


def test_explain_says_it_of_one_table(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """The mark, since when, what keeps it back, what was removed."""
    said = " ".join(ask(monkeypatch, config, whole(), "explain", "orders").output.split())
    assert (
        "orders: history removed before 2026-03-03 12:00:00.001 UTC, applied 1 hour ago; kept back by hold h1 of ann"
        in said
    )
    assert "history_mode execute; 7.0 KiB removed 1 hour ago" in said
    assert "lowtide hold release orders h1" in said
    other = " ".join(ask(monkeypatch, config, whole(), "explain", "users").output.split())
    assert "users: history never removed; kept back by history_max_age 7d (tables.users.history_max_age)" in other
    assert "h1" not in other


def test_the_json_has_it_for_monitors(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """All of status; of explain what concerns the table."""
    said = json.loads(ask(monkeypatch, config, whole(), "status", "--json").output)
    assert [(h["table"], h["age"], h["mode"]) for h in said["history"]] == [
        ("orders", "7d", "execute"),
        ("users", "7d", "execute"),
    ]
    assert said["history"][0]["removed"]["bytes"] == 7168
    assert said["history"][0]["held_by"][0]["by"] == "hold"
    assert [(h["id"], h["counts"]) for h in said["holds"]] == [("h1", True)]
    assert said["ledger"]["money"]["wrong"] == 0
    assert said["commit_table"] == {"at": "2026-03-10T11:00:00.000+00:00", "entries": 84, "marks": 37}
    users = json.loads(ask(monkeypatch, config, whole(), "explain", "users", "--json").output)
    assert ([h["table"] for h in users["history"]], users["holds"]) == (["users"], [])
    stuck = replace(whole(), ledger=ledger(3 * DAY))
    assert json.loads(ask(monkeypatch, config, stuck, "status", "--json").output)["level"] == "alarm"
    assert json.loads(ask(monkeypatch, config, healthy(), "status", "--json").output)["ledger"] is None
    assert json.loads(ask(monkeypatch, config, healthy(), "status", "--json").output)["commit_table"] is None
