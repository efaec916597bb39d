"""Which tables a scheduled cleanup takes, and what its summary becomes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException
from lowtide_airflow import report
from lowtide_airflow.choice import choose_tables
from lowtide_airflow.factory import lowtide_dags
from lowtide_airflow.tables import candidates

from lowtide.config import Config
from lowtide.run.summary import Summary, TableReport
from lowtide.tables.inventory import Entry, Kind


def entry(table: str, kind: Kind) -> Entry:
    return Entry(table, kind, enabled=True)


def test_the_choice_leaves_out_own_tables_and_plain_ones_only() -> None:
    """What may be transactional is taken: known so, of unknown standing, or never seen."""
    config = Config(tables={"said_plain": {"kind": "plain"}, "said_transactional": {"kind": "transactional"}})
    known = {
        "orders": entry("orders", Kind.TRANSACTIONAL),
        "odd": entry("odd", Kind.UNMARKED),
        "logs": entry("logs", Kind.PLAIN),
        "said_transactional": entry("said_transactional", Kind.PLAIN),
        "dropped": entry("dropped", Kind.TRANSACTIONAL),
    }
    own = ["OMID_COMMIT_TABLE", "OMID_TIMESTAMP_TABLE", "LOWTIDE_STATE", "LOWTIDE_JOURNAL"]
    listed = [*own, "orders", "odd", "logs", "new", "said_plain", "said_transactional"]
    assert candidates(config, listed, known) == ["new", "odd", "orders", "said_transactional"]


def test_a_configured_table_that_is_not_there_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A misspelt name in the configuration would otherwise go unnoticed for good."""
    assert candidates(Config(tables={"ordres": {}}), ["orders"], {}) == ["orders"]
    assert "ordres" in caplog.text


def test_a_choice_of_no_batches_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the setting, and no retry: another try finds the same."""
    monkeypatch.setenv("AIRFLOW__LOWTIDE__BATCHES", "0")
    with pytest.raises(
        AirflowFailException, match=r"\[lowtide\] batches is 0; give 1 or more, or leave it out for 300"
    ):
        choose_tables.function("", {"tables": []}, dag=SimpleNamespace(params={}), dag_run=SimpleNamespace(conf={}))


def test_a_misspelt_key_of_conf_chooses_no_table() -> None:
    """It would choose all of them: Airflow itself lets any key pass. Airflow puts in DAG and run."""
    dag = lowtide_dags(dags=["history_gc"])["history_gc"]
    conf = {"table": ["orders"], "execute": True}
    context = {"dag": dag, "dag_run": SimpleNamespace(conf=conf), "params": {"tables": [], **conf}}
    with pytest.raises(AirflowFailException, match=r"'table' \(tables may be meant\)"):
        dag.get_task("choose_tables").execute(context)


def a_summary(**changes: object) -> Summary:
    summary = Summary("orphan_cleanup", "run-1", execute=True, bound=17, low_watermark=20)
    for name, deleted in (("orders", 3), ("stock", 0)):
        table = TableReport(name, regions=2, regions_recorded=2)
        table.counts.deleted = deleted
        summary.tables.append(table)
    for name, value in changes.items():
        setattr(summary, name, value)
    return summary


def test_the_log_says_of_each_table_what_was_done() -> None:
    """One line a table, counts by name, skipped ones with their reason."""
    summary = a_summary()
    summary.tables[0].counts.skipped["written by no oracle"] = 5
    text = "\n".join(report.log_lines(summary.to_json()))
    assert "orders        2/2  deleted 3, skipped 5 (written by no oracle)" in text
    assert "stock         2/2  nothing to do" in text
    assert "prune bound 17, low watermark 20" in text
    assert "executed" in text


def test_the_log_says_what_holds_the_bound_as_status_does() -> None:
    """In a sentence: where, why, and what to do; of a store without tables there is no where."""
    held = {"table": "orders", "region": "r", "keys": "[a, b)", "watermark": 7, "reason": "never cleaned"}
    nowhere = {"table": "", "region": None, "keys": None, "watermark": 0, "reason": "no table"}
    summary = a_summary(blockers=[{**held, "regions": 3, "remedy": "clean it"}, {**nowhere, "remedy": "look"}])
    assert report.log_lines(summary.to_json())[-2:] == [
        "  held by orders [a, b) and 2 more regions: never cleaned. Remedy: clean it",
        "  held by no table. Remedy: look",
    ]


def test_the_log_of_a_dry_run_says_that_nothing_was_changed() -> None:
    """Counts of a plan must not read as deeds."""
    assert "nothing was changed" in report.log_lines(a_summary(execute=False).to_json())[0]


def test_a_digest_is_bounded_and_counts_what_it_leaves_out() -> None:
    """A run with a thousand problems fits into an XCom, and says that there were a thousand."""
    summary = a_summary(problems=[f"problem {n}" for n in range(1000)])
    summary.tables[0].problems.append("out of budget")
    digest = report.digest(summary.to_json())
    assert digest["problem_count"] == 1001
    assert digest["problems"][0] == "orders: out of budget"
    assert len(digest["problems"]) == 20
    assert digest["totals"] == {"deleted": 3}


def test_failed_actions_are_a_problem_though_nobody_described_them() -> None:
    """The task's message must never be empty."""
    summary = a_summary()
    summary.tables[1].counts.failed = 4
    assert list(report.all_problems(summary.to_json())) == ["stock: 4 actions failed"]


def test_the_digests_of_batches_add_up() -> None:
    """The asset event of a run carries the sum of its batches, skipped cells by reason."""
    first, second = a_summary(), a_summary(problems=["broken"])
    first.tables[0].counts.skipped["x"] = 1
    second.tables[0].counts.skipped["x"] = 2
    merged = report.merge([report.digest(first.to_json()), report.digest(second.to_json())])
    assert merged == {
        "jobs": 2,
        "problem_count": 1,
        "problems": ["broken"],
        "totals": {"deleted": 6, "skipped": {"x": 3}},
    }
    assert report.merge([])["jobs"] == 0
