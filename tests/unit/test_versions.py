"""The page of versions: made from what ran, and from nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import versions
from suite.results import Case, read_cases

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_rule" time="1"/>
<testcase classname="tests.spark.test_b" name="test_column" time="1"/>
<testcase classname="tests.store.test_c" name="test_right" time="1"/>
<testcase classname="tests.store.test_c" name="test_wrong" time="1"><failure message="no"/></testcase>
<testcase classname="tests.airflow.test_d" name="test_page" time="0"><skipped message="left out"/></testcase>
</testsuite></testsuites>"""


def run(**about: Any) -> dict[str, Any]:
    """A run of the file's form."""
    plain = {
        "date": "2026-01-02",
        "what": "make test",
        "versions": {"Spark": "4.2.0"},
        "tests": {"spark": {"passed": 3}},
    }
    return plain | about


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    file = tmp_path / "results.xml"
    file.write_text(JUNIT)
    return read_cases("", [file])


def test_the_page_is_up_to_date() -> None:
    """docs/versions.md is what tools/versions.py writes."""
    assert versions.PAGE.read_text("utf-8") == versions.page(versions.read()), "run tools/versions.py"


def test_a_run_counts_for_what_its_tests_used(cases: list[Case]) -> None:
    """Tests are summed up by folder; where those of Airflow were left out, its version was not tried."""
    tests, used = versions.summed(cases)
    assert tests == {
        "airflow": {"left out": 1},
        "spark": {"passed": 1},
        "store": {"failed": 1, "passed": 1},
        "unit": {"passed": 1},
    }
    assert {"Spark", "HBase", "Omid", "Thrift gateway"} <= used
    assert not {"Airflow", "Phoenix"} & used


def test_only_the_tests_of_phoenix_use_phoenix() -> None:
    """Others of their folder do not: the longest name that fits says what is used."""
    _, used = versions.summed([Case("", "tests.store.test_phoenix", "test_index", 1.0, "passed")])
    assert "Phoenix" in used


def test_where_dags_are_only_loaded_no_store_was_used() -> None:
    """Airflow was, and its provider; a run under its scheduler used a store, too."""
    _, used = versions.summed([Case("", "tests.airflow.test_dag_files", "test_loads", 1.0, "passed")])
    assert used == {"Python", "System", "Airflow", "Apache Spark provider"}
    _, used = versions.summed([Case("", "tests.airflow.test_runs", "test_day", 1.0, "passed")])
    assert used >= {"Airflow", "Spark", "HBase"}


def test_where_yarn_ran_hadoop_was_used() -> None:
    """Of jobs on YARN and HDFS Hadoop's version counts, and Airflow's of the one that it starts."""
    folder, used = versions.summed([Case("", "tests.cluster.test_kills", "test_cells", 1.0, "passed")])
    assert (list(folder), used & {"Hadoop", "Spark", "Airflow"}) == (["YARN and HDFS"], {"Hadoop", "Spark"})
    _, used = versions.summed([Case("", "tests.cluster.test_airflow", "test_connection", 1.0, "passed")])
    assert used >= {"Hadoop", "Airflow"}


def test_servers_of_an_older_line_are_named_as_they_are(tmp_path: Path) -> None:
    """The jars of each line lie in a folder of its own; where a run says nothing, its servers were of the newest."""
    for folder, version in (("lib", "2.6.4-hadoop3"), ("hbase-2.5/lib", "2.5.11-hadoop3")):
        lib = tmp_path / "embedded/target" / folder
        lib.mkdir(parents=True)
        (lib / f"hbase-server-{version}.jar").touch()
    assert versions.installed(sys.executable, tmp_path)["HBase"] == "2.6.4-hadoop3"
    assert versions.installed(sys.executable, tmp_path, "2.5")["HBase"] == "2.5.11-hadoop3"


def test_results_of_another_folder_are_all_that_counts(tmp_path: Path) -> None:
    """Beside the suite's results stand those of the connector's own tests, and not those of an older Spark; beside
    others nothing does.
    """
    suite, other = tmp_path / ".lowtide/suite", tmp_path / "other"
    reports = tmp_path / "connector/target/surefire-reports"
    for folder in (suite, other, reports):
        folder.mkdir(parents=True)
    case = '<testsuite><testcase classname="{}" name="test_it" time="1"/></testsuite>'
    (suite / "unit.xml").write_text(case.format("tests.unit.test_a"))
    (suite / "spark-3.5.xml").write_text(case.format("tests.spark.test_a"))
    (other / "store.xml").write_text(case.format("tests.store.test_a"))
    (reports / "TEST.xml").write_text(case.format("lowtide.connector.RowsTest"))
    assert set(versions.summed(versions.results(tmp_path))[0]) == {"connector", "unit"}
    assert set(versions.summed(versions.results(tmp_path, other))[0]) == {"store"}


def test_a_run_takes_the_place_of_its_like() -> None:
    """Of one with the same name and versions; another version is another run."""
    first, again = run(), run(date="2026-01-03")
    other = run(versions={"Spark": "4.1.4"})
    assert versions.added([first, other], again) == [other, again]


def test_nothing_is_recorded_without_results() -> None:
    """No run counts that ran no test."""
    with pytest.raises(SystemExit, match="there are no results of tests; run them first"):
        versions.added([], run(tests={}))


def test_a_failure_wants_a_word() -> None:
    """A red run is recorded with the reason, or not at all."""
    red = run(tests={"spark": {"passed": 3, "failed": 2}})
    with pytest.raises(SystemExit, match=r"2 tests failed; say in a word why: --note"):
        versions.added([], red)
    assert versions.added([], red | {"note": "try_cast is missing"})


def test_what_failed_was_not_tried() -> None:
    """A version whose tests failed stands among the runs, and not in the matrix; a later green run changes that."""
    red = run(versions={"Spark": "3.5.9"}, tests={"spark": {"failed": 2}}, note="A function is missing.")
    page = versions.page([run(), red])
    assert "| Spark | 4.2.0 |" in page
    assert "spark 0 (2 failed). A function is missing. | Spark 3.5.9 |" in page
    assert "| Spark | 3.5.9, 4.2.0 |" in versions.page([run(), run(versions={"Spark": "3.5.9"})])


def test_versions_stand_in_their_order() -> None:
    """As numbers, not as text."""
    many = [run(versions={"Spark": version}) for version in ("4.10.0", "4.2.0", "3.5.9")]
    assert "| Spark | 3.5.9, 4.2.0, 4.10.0 |" in versions.page(many)


def test_what_the_code_refuses_stands_on_the_page() -> None:
    """By the limits that it goes by."""
    assert "| Airflow | - | `>=3.3, <4` | before 3.3, and from 4 on |" in versions.page([])
