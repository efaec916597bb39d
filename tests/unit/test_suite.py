"""The runner of ``make test``: what it reads of results, and that no phase, no file and no processor second is
forgotten.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from suite import __main__ as suite
from suite.cpu import MARK, Meter
from suite.phases import LANES, LEAST_SPARK, LONGEST_FIRST, PHASES
from suite.results import Case, closing, read_cases
from suite.tables import print_failed, print_left_out

from tests.prove import PROVE

ROOT = Path(__file__).resolve().parents[2]
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.store.test_a" name="test_right" time="1,001.5"/>
<testcase classname="tests.store.test_a" name="test_wrong" time="2"><failure message="no"/></testcase>
<testcase classname="tests.store.test_a" name="test_never_began" time="2"><error message="no store"/></testcase>
<testcase classname="tests.store.test_b" name="test_page" time="0">
<skipped message="left out: needs a browser: install one"/>
</testcase>
<testcase classname="tests.store.test_b" name="test_other" time="0"><skipped message="another reason"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    file = tmp_path / "store.xml"
    file.write_text(JUNIT)
    return read_cases("store", [file])


def test_results_are_read_from_junit(cases: list[Case]) -> None:
    """Errors count as failures; seconds may have separators of thousands; a test that is skipped for another reason is
    not left out.
    """
    assert [c.outcome for c in cases] == ["passed", "failed", "failed", "skipped", "skipped"]
    assert [c.seconds for c in cases] == [1001.5, 2, 2, 0, 0]
    assert [c.name for c in cases if c.left_out] == ["test_page"]
    assert {c.phase for c in cases} == {"store"}


def test_too_small_a_disk_is_named_before_a_test_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With how much there is, how much is needed, and what to do; a disk with room is no matter."""
    suite.check_room(tmp_path)
    monkeypatch.setattr(suite, "_NEEDS", 2**60)
    with pytest.raises(SystemExit, match=rf"make test: {tmp_path} has [\d.]+ GiB free, and the tests need 10737"):
        suite.check_room(tmp_path)


def test_the_last_line_counts_every_test(cases: list[Case]) -> None:
    """In the form that tools read: passed, failed, and skipped where there are any."""
    assert closing(cases) == "1 passed, 2 failed, 2 skipped"
    assert closing(cases[:1]) == "1 passed, 0 failed"


def test_what_was_left_out_is_named_with_its_remedy(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    """By test; nothing is printed where nothing was."""
    print_left_out(cases)
    assert (
        capsys.readouterr().out == "left out: 1 tests\n  tests.store.test_b::test_page: needs a browser: install one\n"
    )
    print_left_out(cases[:2])
    assert capsys.readouterr().out == ""


def test_what_failed_is_named_at_the_end(cases: list[Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its tests by name with the first line of why; of a phase whose tests do not fail, or has none, the end of its
    log.
    """
    log = tmp_path / "rules.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)))
    print_failed("store", log, cases)
    assert capsys.readouterr().out == (
        "store failed\n  tests.store.test_a::test_wrong: no\n  tests.store.test_a::test_never_began: no store\n"
    )
    print_failed("rules", log, [])
    told = capsys.readouterr().out.splitlines()
    assert (told[0], told[-1], len(told)) == ("rules failed", "  line 99", 13)


def test_a_junit_file_that_was_cut_short_is_no_result(tmp_path: Path) -> None:
    """The phase that wrote it has failed by its exit code."""
    (file := tmp_path / "store.xml").write_text(JUNIT[:200])
    assert read_cases("store", [file]) == []


def test_a_phase_that_hangs_is_ended_before_the_machine_is() -> None:
    """Its limit leaves a test's own time-out time to say which test it was; of the two lanes together ninety
    minutes are there, of the whole proof five hours and a half.
    """
    assert min(phase.limit for phase in PHASES.values()) >= 15
    assert max(phase.limit for phase in PHASES.values()) < (330 if PROVE else 90)


def test_every_phase_has_one_lane() -> None:
    """None runs twice, none never."""
    assert sorted(name for lane in LANES for name in lane) == sorted(PHASES)


def test_the_files_that_begin_are_there() -> None:
    """A renamed file would stop its whole phase."""
    assert [name for name in LONGEST_FIRST if not (ROOT / name).is_file()] == []


def test_every_file_of_tests_is_in_a_phase() -> None:
    """Once, except those of targets of their own."""
    phases = [p for p in PHASES.values() if p.name != LEAST_SPARK]  # which runs some of them once more
    parts = [part for p in phases for command in p.made(2, Path("x"), Path("y")) for part in command]
    for file in ROOT.glob("tests/*/test_*.py"):
        name, folder = str(file.relative_to(ROOT)), f"tests/{file.parent.name}"
        own = folder in ("tests/compose", "tests/cluster", "tests/secured")
        assert parts.count(name) + parts.count(folder) == (not own), name


def test_processor_seconds_are_counted_by_phase_in_programs_that_left_their_parent(tmp_path: Path) -> None:
    """A server that a test started belongs to the phase of the test, also when the one who started it is gone. The
    disk is looked at too.
    """
    busy = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\ntime.sleep(60)"
    start = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=-3).pid)"
    with Meter(tmp_path) as meter:
        pids = [
            int(
                subprocess.check_output(
                    [sys.executable, "-c", start, busy.format(used)], env={**os.environ, MARK: phase}
                )
            )
            for phase, used in (("one", 0.5), ("two", 0.2))
        ]
        try:
            for _ in range(200):
                meter.look()
                if meter.seconds.get("one", 0) >= 0.5 and meter.seconds.get("two", 0) >= 0.2:
                    break
                subprocess.run(["sleep", "0.1"], check=True)
        finally:
            for pid in pids:
                os.kill(pid, 9)
    assert 0.5 <= meter.seconds["one"] < 1.5
    assert 0.2 <= meter.seconds["two"] < 1
    assert 0 < meter.least_free <= meter.free
