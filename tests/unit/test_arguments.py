"""What a job can be told, and what is made of it before anything starts."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lowtide.errors import UsageError
from lowtide.run.arguments import arguments, understood, without_grace
from lowtide.run.jobs import INSPECTIONS, JOBS
from lowtide.run.options import OPTIONS, Option, options_of, takes

NOW = datetime(2026, 2, 1, tzinfo=UTC)
#: What an option that wants a value is given.
VALUES = {
    "--config": "lowtide.yaml",
    "--table": "orders",
    "--from": "2026-01-01T00:00:00Z",
    "--to": "2026-01-02T00:00:00Z",
    "--grace": "1h",
    "--budget-rows": "5",
    "--budget-share": "0.5",
    "--approved": "plan.json",
    "--csv": "folder",
    "--restore": "r1",
    "--since-snapshot": "s1",
    "--as-committed": "50=100",
    "--sample": "0.1",
    "--rate": "30000",
    "--write-rate": "2000",
    "--show": "r1",
    "--first": "5",
    "--row": "r",
    "--json": "found.json",
    "--html": "page.html",
    "--before": "seen.json",
    "--after": "seen.json",
    "--run-id": "r2",
    "--context": "try=1",
    "--summary": "summary.json",
}


def asked(job: str, *argv: str) -> Any:
    return understood(job, arguments(job, argv), "r", NOW)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
def test_an_option_is_offered_to_the_jobs_that_have_a_use_for_it(option: Option) -> None:
    """Its value is found under its name; any other job refuses it, and names those that take it."""
    argv = [option.name, *([VALUES[option.name]] if option.metavar else [])]
    for job in JOBS:
        if takes(job, option.name):
            assert getattr(arguments(job, argv), option.attribute)
            continue
        with pytest.raises(UsageError, match=rf"{job} has no option {option.name}, which is for .*{option.jobs[0]}"):
            arguments(job, argv)


@pytest.mark.parametrize("job", JOBS)
def test_no_job_has_two_options_of_one_name(job: str) -> None:
    """Nor two that are kept under one."""
    options = options_of(job)
    assert set(Counter(option.name for option in options).values()) == {1}
    assert set(Counter(option.attribute for option in options).values()) == {1}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
def test_every_option_is_explained_as_a_clause(option: Option) -> None:
    """Help makes a sentence of it."""
    assert option.text[0].islower() or option.text.startswith("ISO")
    assert not option.text.endswith(".")


@pytest.mark.parametrize("job", JOBS)
def test_what_a_run_reads_of_its_options_is_always_there(job: str) -> None:
    """Also where its job does not offer them. A job that inspects reads everything, and refuses no plan."""
    options = arguments(job, [])
    for name in (
        "discovered",
        "start",
        "end",
        "grace",
        "approved",
        "execute",
        "as_configured",
        "rate",
        "write_rate",
        "table",
    ):
        assert not getattr(options, name)
    assert options.full is (job in INSPECTIONS)
    assert bool(options.budget_rows) is bool(options.budget_share) is (job in INSPECTIONS)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--excute"], "orphan_cleanup has no option --excute; --execute may be meant"),
        (["--exec"], "--execute may be meant"),  # no abbreviations: what is meant later may be another
        (["--tabel=orders"], "no option --tabel; --table may be meant"),
        (["--sample", "0.1"], "orphan_cleanup has no option --sample, which is for survey, verify"),
        (["orders"], "orphan_cleanup takes no 'orders': each value stands behind an option"),
        (["--table"], "--table: expected one argument"),
        (["--execute", "--as-configured"], "not allowed with"),
        (["--budget-rows", "0"], "--budget-rows: a whole number above 0 is expected, found 0"),
        (["--budget-rows", "many"], "--budget-rows: a whole number above 0 is expected, found many"),
        (["--budget-share", "nan"], "--budget-share: a share above 0 and up to 1 is expected, such as 0.1, found nan"),
        (["--budget-share", "50"], "--budget-share: a share above 0 and up to 1 is expected, such as 0.1, found 50"),
        (["--from", "yesterday"], "--from: an ISO 8601 time such as .* is expected, found 'yesterday'"),
        (["--to", "2026-01-01"], "has no time zone"),
        (["--to", "2026-03-01T00:00:00Z"], "is in the future: the clock of this machine says .*of that machine or"),
        (["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "not after its start"),
        (["--context", "try"], "--context: KEY=VALUE is expected, found 'try'"),
        (["--approved", "plan.json"], "give --execute with it"),
        (["--approved", "nowhere.json", "--execute"], "cannot read nowhere.json"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(argv: list[str], says: str) -> None:
    """Option, value, and what is expected, or the nearest that there is."""
    with pytest.raises(UsageError, match=says) as refused:
        asked("orphan_cleanup", *argv)
    assert "\n" not in str(refused.value)


def test_a_plan_is_read_before_anything_starts(tmp_path: Path) -> None:
    """A file that holds none is refused here, not after half a minute of Spark."""
    file = tmp_path / "plan.json"
    file.write_text("{}")
    with pytest.raises(UsageError, match="is no summary of a run"):
        asked("history_gc", "--execute", "--approved", str(file))


@pytest.mark.parametrize(
    ("job", "option"),
    [(job, o.name) for job in ("survey", "verify", "orphan_cleanup") for o in options_of(job) if o.writes],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(job: str, option: str, tmp_path: Path) -> None:
    """It may take hours, and what was found would be lost."""
    (tmp_path / "file").touch()
    for file, said in (
        (tmp_path / "none" / "found", f"{option} .*: there is no folder .*none"),
        (tmp_path / "file" / "found", f"{option} .*: there is no folder .*file"),
        (tmp_path, f"{option} .*: it is a folder"),
    ):
        with pytest.raises(UsageError, match=said):
            asked(job, option, str(file))
    asked(job, option, str(tmp_path / "file"))
    asked(job, option, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_file_that_belongs_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the system says of this user; who may write to the file need not to the folder."""
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) == tmp_path / "mine")
    (tmp_path / "mine").touch()
    asked("survey", "--json", str(tmp_path / "mine"))
    with pytest.raises(UsageError, match=r"--json .*theirs: this user may not write there"):
        asked("survey", "--json", str(tmp_path / "theirs"))


@pytest.mark.parametrize("share", ["0", "1.5", "-1", "nan", "half"])
def test_a_share_is_above_nothing_and_at_most_all(share: str) -> None:
    """And whatever else is written, the message is the same."""
    with pytest.raises(UsageError, match=f"--sample: a share above 0 and up to 1 .* found {share}"):
        arguments("survey", [f"--sample={share}"])


def test_times_durations_and_pairs_are_understood() -> None:
    """Times in UTC, the last of two graces, and what the caller wants kept."""
    said = asked("orphan_cleanup", "--from", "2026-01-01T01:00:00+01:00", "--context", "try=1", "--context", "log=a=b")
    assert said.request.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert said.context == {"try": "1", "log": "a=b"}
    assert asked("commit_table_pruning", "--grace", "1h", "--grace=2h").grace == timedelta(hours=2)
    assert asked("commit_table_pruning").grace is None


@pytest.mark.parametrize(
    ("argv", "asks"),
    [
        ("--execute --grace 0s", True),
        ("--grace=0s --execute", True),
        ("--grace 1h --execute --grace 0h", True),
        ("--execute --grace 0s --yes", False),
        ("--execute --grace 0s --grace 1h", False),
        ("--grace 0s", False),
        ("--execute", False),
    ],
)
def test_pruning_without_grace_raises_a_question(argv: str, asks: bool) -> None:
    """Where it acts and nobody says that it is meant. No other job raises one."""
    assert without_grace(arguments("commit_table_pruning", argv.split())) is asks
    assert not without_grace(arguments("transaction_repair", [w for w in argv.split() if w != "--yes"]))
