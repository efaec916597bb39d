"""What every job's program is told, and what it books."""

from __future__ import annotations

import errno
import json
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from lowtide_spark import survey
from lowtide_spark.frames.store import told
from lowtide_spark.run import job as program
from py4j.protocol import Py4JError

from lowtide.config import Config, State
from lowtide.errors import GatewayError, StoreError, UsageError
from lowtide.run import deploy
from lowtide.run.summary import Summary


def test_arguments_that_cannot_be_meant_end_a_program_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """In a sentence, with the exit code of bad arguments, before anything is looked for."""
    with pytest.raises(SystemExit) as ended:
        program.run_job("balances", lambda _: pytest.fail("it ran"), ["--excute"])
    assert ended.value.code == 2
    assert "balances has no option --excute; --execute may be meant" in capsys.readouterr().err


@pytest.fixture
def nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Neither store nor Spark: what a job's frame does around its body. The arguments that every job needs."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("")
    monkeypatch.setattr(program, "check_place", lambda: None)
    monkeypatch.setattr(program, "nobody_answers", lambda *_: False)
    for check in ("check_rights", "check_cluster", "check_clock", "note_hbase"):
        monkeypatch.setattr(program.Run, check, lambda _: None)

    def started(*_: object) -> SimpleNamespace:
        time.sleep(0.2)
        return SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))

    monkeypatch.setattr(program, "session", started)
    monkeypatch.setattr(program, "Store", lambda *_: SimpleNamespace(spark=None, login=lambda: "ann"))
    return ["--config", str(file)]


def test_sparks_start_is_booked(nothing_there: list[str]) -> None:
    """It is what a small run takes longest for."""
    phases: dict[str, float] = {}
    code = program.run_job("balances", lambda run: phases.update(run.summary.phases), nothing_there, read_only=True)
    assert code == 0
    assert 0.2 <= phases["start"] < 5


@pytest.mark.parametrize("error", [GatewayError("HBase does not answer"), ConnectionError("HBase does not answer")])
def test_a_run_whose_summary_is_not_kept_ends_red(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    """Though its work went well: nobody finds it in the store. Its exit code says what its summary does."""

    def unreachable(_: program.Run) -> None:
        raise error

    monkeypatch.setattr(program.Run, "state", unreachable)
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 1
    assert json.loads(file.read_text())["problems"] == ["the summary is not in the state table: HBase does not answer"]


def test_a_summary_that_cannot_be_written_is_told_all_the_same(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal, with why: of a full disk nothing was known before the run."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Summary, "write", full)
    given = [*nothing_there, "--summary", str(tmp_path / "s.json")]
    assert program.run_job("survey", lambda _: None, given, read_only=True) == 1
    assert "s.json: No space left on device" in "".join(capsys.readouterr())


def test_what_was_found_is_printed_before_it_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that a disk that is full takes nothing away from who reads it."""
    shown: list[object] = []
    monkeypatch.setattr(survey, "take", lambda _: SimpleNamespace(to_json=lambda: "{}"))
    monkeypatch.setattr(survey, "print_survey", lambda _, found: shown.append(found))
    options = SimpleNamespace(json=tmp_path / "none" / "found.json", html=None)
    with pytest.raises(FileNotFoundError):
        survey.survey(SimpleNamespace(options=options))  # type: ignore[arg-type]
    assert shown


@pytest.mark.parametrize("behind", [True, False])
def test_why_nobody_was_let_in_is_told_once(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, behind: bool
) -> None:
    """Not again for the summary, which is not let in either, and nothing of Java's."""
    said = "An error occurred: RetriesExhaustedException\nSaslException: No common protection layer between client and"

    def refused(_: program.Run) -> None:
        raise StoreError(told(Py4JError(said)))

    def unreachable(_: program.Run) -> None:
        if behind:
            raise ConnectionError("HBase's client in the driver: Failed after attempts=4") from Py4JError(said)
        raise ConnectionError(said)

    monkeypatch.setattr(program.Run, "state", unreachable)
    file = tmp_path / "summary.json"
    assert program.run_job("balances", refused, [*nothing_there, "--summary", str(file)]) != 0
    first, second = json.loads(file.read_text())["problems"]
    assert "do not agree on hbase.rpc.protection" in first
    assert second == "the summary is not in the state table either"


def test_what_hbase_did_not_answer_is_told_without_java(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of its client's attempts their number."""
    said = "org.apache.hadoop.hbase.client.RetriesExhaustedException: Failed after attempts=4, exceptions:\n2026-11-26"

    def unreachable(_: program.Run) -> None:
        raise ConnectionError(said)

    monkeypatch.setattr(program.Run, "state", unreachable)
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 1
    (problem,) = json.loads(file.read_text())["problems"]
    assert problem == "the summary is not in the state table: HBase gave no answer in 4 attempts"


def test_a_driver_in_the_cluster_reads_nothing(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It refuses with the exit code of bad arguments before it looks for a configuration: in a container without one,
    that for this machine would count.
    """

    def refuse() -> None:
        deploy.check_driver({deploy.SETTING: "cluster"})

    monkeypatch.setattr(program, "check_place", refuse)
    monkeypatch.setattr(program, "load", lambda _: pytest.fail("a configuration is read"))
    monkeypatch.setattr(program, "nobody_answers", lambda *_: pytest.fail("the store is looked for"))
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 2
    (problem,) = json.loads(file.read_text())["problems"]
    assert "this driver runs in the cluster" in problem


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            "calling o9.save.\n: SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_3 not found",
            "an executor was lost, and with it what this run had planned; what was done until then is safe. Run again",
        ),
        (
            "calling o59.collectToPython.\n: java.lang.ClassNotFoundException: lowtide.connector.Piece",
            "an executor lacks the connector",
        ),
        (
            "calling None.\n: YarnException: Failed to submit application_1_7 to YARN : Application application_1_7 "
            "submitted by user me to unknown queue: nosuch\n\tat org.apache",
            "YARN does not take the run: Application application_1_7 submitted by user me to unknown queue: nosuch. "
            "spark.yarn.queue in spark.conf names its queue",
        ),
        (
            "calling None.\n: org.apache.hadoop.yarn.exceptions.YarnException: org.apache.hadoop.security."
            "AccessControlException: User al does not have permission to submit application_1_1 to queue closed\n\tat",
            "YARN does not take the run: User al does not have permission to submit application_1_1 to queue closed. ",
        ),
        (
            'calling None.\n: AccessControlException: Permission denied: user=al, access=WRITE, inode="/user":hdfs:x',
            "HDFS refuses al WRITE access to /user: have it granted",
        ),
        (
            "calling o9.localCheckpoint.\n: java.lang.IllegalArgumentException: Table a:b is disabled. Enable it (in "
            "the HBase shell: enable 'a:b') and run again.\n\tat lowtide.connector",
            "Table a:b is disabled. Enable it (in the HBase shell: enable 'a:b') and run again.",
        ),
        (
            "calling o9.load.\n: java.lang.IllegalArgumentException: Unknown table: a:b.c. Check the name, and",
            "table a:b.c was dropped, or got another name, while the run went on. Run again",
        ),
        (
            "calling o59.collectToPython.\n: java.io.IOException: no room",
            "unexpected RuntimeError: : java.io.IOException",
        ),
    ],
)
def test_what_executors_say_is_told_by_what_it_means(
    nothing_there: list[str], tmp_path: Path, error: str, says: str
) -> None:
    """Not by the number of a call; of other errors by what Java says."""

    def fail(_: program.Run) -> None:
        raise RuntimeError(error)

    file = tmp_path / "summary.json"
    assert program.run_job("survey", fail, [*nothing_there, "--summary", str(file)], read_only=True) == 1
    (problem,) = json.loads(file.read_text())["problems"]
    assert problem.startswith(says)


def test_a_zookeeper_that_does_not_answer_is_named_before_spark_starts(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """HBase's client would look for it for minutes."""
    monkeypatch.setattr(program, "nobody_answers", lambda addresses, _: addresses == ["127.0.0.1:2181"])
    monkeypatch.setattr(program, "session", lambda *_: pytest.fail("Spark is started"))
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 1
    (problem,) = json.loads(file.read_text())["problems"]
    assert "ZooKeeper does not answer at 127.0.0.1:2181" in problem
    assert "hbase.zookeeper_quorum" in problem


ACTING = ["--execute"]


@pytest.fixture
def entered(nothing_there: list[str], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a run does around its body, in its order: entries of the audit log, the sweep, the summary that is kept."""
    done: list[object] = []
    monkeypatch.setattr(program.owner, "claim", lambda _: None)
    monkeypatch.setattr(program.audit_log, "began", lambda _, _summary, given: done.append(("began", given)))
    monkeypatch.setattr(program.audit_log, "ended", lambda _, _summary, code: done.append(("ended", code)))
    monkeypatch.setattr(program.sideline, "sweep", lambda _: done.append("swept") or [])
    monkeypatch.setattr(program, "_keep", lambda _: done.append("kept") or True)
    monkeypatch.setattr(program, "progress", lambda *_: nullcontext())
    monkeypatch.setattr(program.Run, "check_cluster", lambda _: done.append("first effect"))
    return done


def test_a_run_is_entered_before_its_first_effect_and_when_it_is_over(
    nothing_there: list[str], entered: list[object]
) -> None:
    """With its arguments, and its exit code; old sidelines go whatever it found to do."""
    given = [*nothing_there, *ACTING]
    assert program.run_job("watermark_collection", lambda _: entered.append("body"), given) == 0
    assert entered == [("began", given), "first effect", "body", "swept", ("ended", 0), "kept"]


def test_the_end_is_entered_of_a_run_that_fails_too(nothing_there: list[str], entered: list[object]) -> None:
    """And nothing is swept."""

    def fail(_: program.Run) -> None:
        raise GatewayError("HBase does not answer")

    code = program.run_job("watermark_collection", fail, [*nothing_there, *ACTING])
    assert code != 0
    assert entered[-2:] == [("ended", code), "kept"]
    assert "swept" not in entered


@pytest.mark.parametrize("job", ["sideline_restore", "journal_replay"])
def test_what_puts_back_sweeps_nothing(nothing_there: list[str], entered: list[object], job: str) -> None:
    """What it reads may be as old."""
    more = {"sideline_restore": ["--restore", "r1"], "journal_replay": ["--from", "2020-01-01T00:00:00Z"]}[job]
    assert program.run_job(job, lambda _: None, [*nothing_there, *more, *ACTING]) == 0
    assert entered[0][0] == "began"  # type: ignore[index]
    assert "swept" not in entered


def test_a_dry_run_enters_nothing(nothing_there: list[str], entered: list[object]) -> None:
    """Nor does it sweep."""
    assert program.run_job("watermark_collection", lambda _: None, nothing_there) == 0
    assert entered == ["first effect", "kept"]


def test_a_run_that_cannot_be_entered_does_nothing(
    nothing_there: list[str], entered: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is red, and its body never begins."""

    def full(*_: object) -> None:
        raise StoreError("the audit log takes no entry", "make room")

    monkeypatch.setattr(program.audit_log, "began", full)
    body = entered.append
    assert program.run_job("watermark_collection", body, [*nothing_there, *ACTING]) != 0
    assert entered == ["kept"]


@pytest.mark.parametrize(
    ("job", "arguments", "asked"),
    [
        ("watermark_collection", ACTING, ["claim"]),
        ("sideline_restore", ["--restore", "r1", *ACTING], ["claim"]),
        ("orphan_cleanup", ["--list"], ["claim"]),
        ("sideline_restore", ["--restore", "r1"], ["check"]),
        ("watermark_collection", [], []),
    ],
)
def test_a_run_asks_whose_the_sideline_is_before_anything_lies_there(
    nothing_there: list[str],
    entered: list[object],
    monkeypatch: pytest.MonkeyPatch,
    job: str,
    arguments: list[str],
    asked: list[str],
) -> None:
    """Who puts something there claims it, who only reads there looks; where it is another's nothing is done."""

    def refusing(what: str) -> None:
        entered.append(what)
        raise UsageError("another's")

    for name in ("claim", "check"):
        monkeypatch.setattr(program.owner, name, lambda _, what=name: refusing(what))
    code = program.run_job(job, lambda _: entered.append("body"), [*nothing_there, *arguments])
    done = [each for each in entered if not isinstance(each, tuple)]
    assert (code, done) == (2 if asked else 0, ["first effect", *(asked or ["body"]), "kept"])


def test_an_end_that_cannot_be_entered_makes_a_run_red(
    nothing_there: list[str], entered: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its summary says so."""

    def full(*_: object) -> None:
        raise StoreError("the audit log takes no entry", "make room")

    monkeypatch.setattr(program.audit_log, "ended", full)
    file = tmp_path / "summary.json"
    given = [*nothing_there, *ACTING, "--summary", str(file)]
    assert program.run_job("watermark_collection", lambda _: None, given) == 1
    assert json.loads(file.read_text())["problems"] == ["the audit log takes no entry; make room"]


def test_folders_that_stay_are_named(
    nothing_there: list[str], entered: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another user's sidelines that are too old: that is a note, and no failure of this run."""
    monkeypatch.setattr(program.sideline, "sweep", lambda _: ["hdfs:///aside/r1", "hdfs:///aside/r2"])
    file = tmp_path / "summary.json"
    given = [*nothing_there, *ACTING, "--summary", str(file)]
    assert program.run_job("watermark_collection", lambda _: None, given) == 0
    [note] = json.loads(file.read_text())["notes"]
    assert note.startswith("2 folders in state.sideline are closed to this user, or cannot be removed")
    assert "such as hdfs:///aside/r1; once they are older" in note


def test_a_sweep_that_fails_undoes_nothing(
    nothing_there: list[str], entered: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the run was for is done: it says what was not removed, and is not red for it."""

    def fail(_: object) -> list[str]:
        raise OSError("the bucket does not answer")

    monkeypatch.setattr(program.sideline, "sweep", fail)
    file = tmp_path / "summary.json"
    given = [*nothing_there, *ACTING, "--summary", str(file)]
    assert program.run_job("watermark_collection", lambda _: None, given) == 0
    [note] = json.loads(file.read_text())["notes"]
    assert note == "what is older than state.sideline_keep was not removed: OSError: the bucket does not answer"
    assert ("ended", 0) in entered


@pytest.mark.parametrize(
    ("sideline", "given", "noted"),
    [
        ("/var/lib/sideline", ["--execute", "--context", "dag_id=orphan_cleanup"], True),
        ("file:///var/lib/sideline", ["--execute", "--context", "dag_id=orphan_cleanup"], False),
        ("/var/lib/sideline", ["--context", "dag_id=orphan_cleanup"], False),
        ("/var/lib/sideline", ["--execute"], False),
    ],
)
def test_a_sideline_of_one_worker_is_noted_where_airflow_starts_jobs(
    sideline: str, given: list[str], *, noted: bool
) -> None:
    """What others of its workers put aside is not seen there, and a restore from a shell sees neither. Not where it is
    a URL, which is taken at its word, nor in a dry run.
    """
    config = Config(state=State(sideline=sideline))
    options = program.arguments("orphan_cleanup", given)
    context = dict(pair.split("=") for pair in options.context)
    summary = Summary("orphan_cleanup", "r", options.execute, context=context, by={"host": "worker-1"})
    program._check_sideline(config, "orphan_cleanup", options, summary, "local[4]")
    assert [f"{sideline}, on this worker (worker-1)" in note for note in summary.notes] == [True] * noted
