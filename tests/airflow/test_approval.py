"""What a person is shown, what the answers lead to, and that nothing acts without one; the whole way is in
test_runs.py.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, DownstreamTasksSkipped, TaskAwaitingInput
from lowtide_airflow import arguments, report
from lowtide_airflow.approval import PlanApproval
from lowtide_airflow.approved import APPROVE, PLAN, SHOWN, approved_plan, approver, digest
from markdown_it import MarkdownIt
from test_arguments import DAY, context

from lowtide.run.approval import approved
from lowtide.run.submit import POOL
from lowtide.run.summary import Counts, Summary, TableReport

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("kind", "conf", "needed"),
    [
        ("manual", {"approval": True, "execute": True}, True),
        ("manual", {"approval": True, "execute": False}, False),
        ("manual", {"execute": True}, False),
        ("scheduled", {"approval": True}, True),
        ("scheduled", None, False),
        ("backfill", {"approval": True, "execute": True}, True),
        ("asset_triggered", {"approval": True, "execute": False}, False),
    ],
)
def test_a_run_that_acts_is_approved_where_that_is_asked_for(kind: str, conf: Any, needed: bool) -> None:
    """A dry run is a plan and nothing else; a run as configured acts, as far as is known before it."""
    assert arguments.needs_approval(arguments.Run.of(context(kind, conf, DAY))) is needed


def a_plan(tables: int = 2, **changes: Any) -> dict[str, Any]:
    reports = [
        TableReport(f"t{n:03}", Counts(healed=n, deleted=10 * n), notes=["look here"] if n == 1 else [])
        for n in range(tables)
    ]
    found = Summary("orphan_cleanup", "r1", False, low_watermark=1049, tables=reports)
    for name, value in changes.items():
        setattr(found, name, value)
    return report.plan(found.to_json())


def test_the_plan_is_shown_by_table() -> None:
    """Where most goes first; with its notes, and what the run will do of it."""
    text = report.plan_text([a_plan(3)], as_configured=False)
    assert "**30** cells of 2 tables would go" in text
    assert "| table | healed | deleted |" in text
    assert text.index("| `t002` | 2 | 20 |") < text.index("| `t001` | 1 | 10 |")
    assert "- `t001`: `look here`" in text
    assert "low watermark 1,049" in text
    assert "mode is `execute`" not in text
    assert "mode is `execute`" in report.plan_text([a_plan(3)], as_configured=True)
    history = TableReport("t", Counts(deleted=1, markers=1, bytes_removed=9), mark={"mark": 2049, "held_by": []})
    assert "| `t` | 1 | 1 | 9 | 2,049 |" in report.plan_text([a_plan_of(history)], as_configured=False)


def a_plan_of(table: TableReport) -> dict[str, Any]:
    return report.plan(Summary("history_gc", "r2", False, low_watermark=3000, tables=[table]).to_json())


def test_a_plan_of_many_tables_stays_readable() -> None:
    """The largest are shown, the others counted; what holds the run to the plan has all of them."""
    plan = a_plan(200)
    text = report.plan_text([plan], as_configured=False)
    assert "and 149 more tables" in text
    assert len(text) < 10_000
    assert len(approved(plan, "orphan_cleanup").parts) == 199


def test_a_note_is_told_as_it_is_and_not_as_markdown() -> None:
    """It may hold what a table's owner says: no link, no picture and no list of an approval's own comes of it."""
    note = (
        "`x`: ![](https://e.org/x) <b>[Approve](https://e.org)</b>\n\n# **0** cells of 0 tables would go.\r- `t`: fine"
    )
    table = TableReport("t", Counts(deleted=1), notes=[note])
    page = MarkdownIt("commonmark", {"html": True}).render(report.plan_text([a_plan_of(table)], as_configured=False))
    told = re.findall("<li><code>t</code>: <code>(.*?)</code></li>", page)
    assert [html.unescape(each) for each in told] == [" ".join(note.split())]
    assert not re.search("<img|<a |<b>|<h1>", page)


def test_the_first_cells_are_shown_whatever_their_keys_hold() -> None:
    """As code, which no key can break out of; where all of them are stands below. Fewer, or none, where an installation
    wants so.
    """
    keys = ["<script>alert(1)</script>", "a|b", "```", "# x", "- y", "{{ 1 }}", "`</code></pre><b>", "\\x0A"]
    summary = Summary("orphan_cleanup", "r1", False, low_watermark=1049, tables=[TableReport("t", Counts(deleted=8))])
    summary.listing.folder = "hdfs://nn/aside/~lists/r1"
    summary.listing.cells["t"] += 300
    cell = {"action": "delete", "table": "t", "family": "f", "qualifier": "q", "timestamp": 50, "kind": "put"}
    summary.listing.first += [{**cell, "row": key, "rule": "orphan", "evidence": "nothing"} for key in keys]
    text = report.plan_text([report.plan(summary.to_json(), 20)], as_configured=False)
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "The first 8 of 300 cells" in page
    assert "<code>hdfs://nn/aside/~lists/r1</code>" in page
    [told] = re.findall(r"<p><code>orphan: nothing</code></p>\s*<ul>(.*?)</ul>", page, re.DOTALL)
    cells = [html.unescape(each) for each in re.findall("<li><code>(.*?)</code></li>", told)]
    assert cells == [f'delete t "{key}" f:q at 50' for key in keys], "below their reason, which stands there once"
    assert "<script>" not in page
    two = report.plan_text([report.plan(summary.to_json(), 2)], as_configured=False)
    assert ("The first 2 of 300" in two, "# x" in two) == (True, False)
    none = report.plan(summary.to_json())
    assert none["listing"]["first"] == []
    assert "All 300 cells are listed" in report.plan_text([none], as_configured=False)


class Answers:
    """A task instance with what others have left for it."""

    def __init__(self, answer: Any, plan: Any) -> None:
        self.left = {(APPROVE, None): answer, (PLAN, "plan"): plan}
        self.map_index = 3

    def xcom_pull(self, task_ids: str, key: str | None = None, map_indexes: int = -1) -> Any:
        assert map_indexes == (3 if task_ids == PLAN else -1)
        return self.left[task_ids, key]


@pytest.mark.parametrize(
    ("answer", "plan", "word"),
    [
        (None, a_plan(), "task approve has none"),
        ({"chosen_options": ["Reject"]}, a_plan(), "task approve has none"),
        ({"chosen_options": ["Approve"]}, None, "no plan of these tables"),
    ],
    ids=["nobody answered", "refused", "no plan"],
)
def test_nothing_acts_without_an_answer_and_a_plan(answer: Any, plan: Any, word: str) -> None:
    """Whatever brought the task to run: marked as done by hand, cleared, or a trigger rule that somebody changed."""
    with pytest.raises(AirflowFailException, match=f"{word}.*nothing was done"):
        approved_plan({"ti": Answers(answer, plan)}, 3)  # type: ignore[typeddict-item]
    good = Answers({"chosen_options": ["Approve"], SHOWN: [digest(a_plan())]}, a_plan())
    assert approved_plan({"ti": good}, 3)["run"] == "r1"  # type: ignore[typeddict-item]


@pytest.mark.parametrize("answer", [{}, {SHOWN: None}, {SHOWN: [digest(a_plan(5)), digest(a_plan(3))]}])
@pytest.mark.parametrize("change", [{"run": "r1.after-try-1"}, {"low_watermark": 2000}, {"tables": []}])
def test_an_answer_holds_for_the_plan_that_was_shown_and_no_other(
    answer: dict[str, Any], change: dict[str, Any]
) -> None:
    """Where somebody clears the task that plans, alone, its new plan stands beside the old answer: it is not acted on,
    be it for the same tables or by the same run.
    """
    shown = a_plan(4)
    given = {"chosen_options": ["Approve"], SHOWN: [digest(a_plan(5)), digest(shown)]}
    assert approved_plan({"ti": Answers(given, shown)}, 3) == shown  # type: ignore[typeddict-item]
    anew = {**shown, **change}
    said = r"is not one that was approved.*nothing was done\. Clear the task approve"
    for each in (given, {"chosen_options": ["Approve"], **answer}):
        with pytest.raises(AirflowFailException, match=said):
            approved_plan({"ti": Answers(each, anew)}, 3)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"id": "1", "name": "ann"}, "ann"),
        (SimpleNamespace(id="1", name="ann"), "ann"),
        ({"id": "1", "name": None}, "1"),
        (None, "somebody"),
    ],
)
def test_who_approved_is_known_to_what_acts(user: Any, name: str) -> None:
    """By the name that Airflow gives, as it comes out of the answer."""
    answer = {"chosen_options": ["Approve"], "responded_by_user": user}
    assert approver({"ti": Answers(answer, None)}) == name  # type: ignore[typeddict-item]


class Asked(Answers):
    """The task instance of an approval, and what it has pushed."""

    def __init__(self, plans: list[Any]) -> None:
        super().__init__(None, plans)
        self.id, self.map_index, self.pushed = "an id", -1, {}  # type: ignore[var-annotated]

    def xcom_pull(self, task_ids: Any, key: str | None = None, map_indexes: int | None = None) -> Any:
        assert (task_ids, key, map_indexes) == ([PLAN], "plan", None)
        return self.left[PLAN, "plan"]

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def test_the_question_is_put_with_the_plans_and_the_answer_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The task is parked without a worker; approved, it ends; refused, it skips the job. Either way the log says who it
    was.
    """
    put: dict[str, Any] = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **about: put.update(about)
    )
    dag = DagBag(ROOT / "dags", known_pools={POOL, "default_pool"}).dags["orphan_cleanup"]
    task = dag.get_task(APPROVE)
    ti = Asked([a_plan(3), None])
    about = {**context("manual", {"approval": True, "execute": True}), "ti": ti, "task_instance": ti, "task": task}
    with pytest.raises(TaskAwaitingInput) as parked:
        task.execute(about)
    assert parked.value.timeout == timedelta(hours=8)
    assert (put["subject"], put["options"]) == ("orphan_cleanup: act on the plan of manual__r?", ["Approve", "Reject"])
    assert "| `t002` | 2 | 20 |" in put["body"]
    event = {"params_input": {}, "responded_at": datetime.now(UTC), "responded_by_user": {"id": "1", "name": "ann"}}
    assert parked.value.method_name == "execute_complete"
    ti.left[PLAN, "plan"] = [a_plan(4), None]  # made anew before the answer comes
    answered = task.execute_complete(about, {**event, "chosen_options": ["Approve"]}, **parked.value.kwargs)
    assert answered["chosen_options"] == ["Approve"]
    assert answered[SHOWN] == [digest(a_plan(3))], "what was shown"
    assert "ann approved the plan" in capsys.readouterr().out
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        task.execute_complete(about, {**event, "chosen_options": ["Reject"]})
    assert skipped.value.tasks == ["clean"]
    assert ti.pushed == {"skipmixin_key": {"skipped": ["clean"]}}
    assert "ann refused the plan; nothing was done" in capsys.readouterr().out


def test_who_is_late_is_told_so_and_not_asked_again() -> None:
    """A retry would put the same question once more."""
    task = PlanApproval(task_id=APPROVE, job="orphan_cleanup", response_timeout=timedelta(minutes=5))
    with pytest.raises(AirflowFailException, match="nobody approved the plan within 0:05:00; nothing was done"):
        task.process_trigger_event_error({"error_type": "timeout", "error": ""})
    assert PlanApproval(task_id=APPROVE, job="x").response_timeout == timedelta(hours=8)


@pytest.mark.parametrize(("dag_id", "acts"), [("orphan_cleanup", "clean"), ("history_gc", "remove")])
def test_the_job_stands_behind_the_approval(dag_id: str, acts: str) -> None:
    """Where it is not asked for the tasks before it are skipped, which must not skip the job; a failed plan must."""
    dag = DagBag(ROOT / "dags", known_pools={POOL, "default_pool"}).dags[dag_id]
    assert dag.get_task(acts).trigger_rule == "none_failed"
    assert dag.get_task(acts).upstream_task_ids == {"choose_tables", APPROVE}
    assert dag.get_task(APPROVE).upstream_task_ids == {PLAN}
    assert dag.get_task(PLAN).upstream_task_ids == {"choose_to_plan"}
    assert {t for t in dag.task_ids if dag.get_task(t).task_group.group_id == "approval"} == {
        "choose_to_plan",
        PLAN,
        APPROVE,
    }
    assert dag.params["approval"] is False
