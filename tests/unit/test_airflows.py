"""Beside an Airflow that does not fit Lowtide says so in a sentence; with one that fits it says nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from lowtide.run import airflows

ROOT = Path(__file__).resolve().parents[2]
DAGS = sorted((ROOT / "dags").glob("*.py"))


@pytest.mark.parametrize("version", ["3.3.0", "3.3.0rc1", "3.3.2+local", "3.3.2", "3.10.0"])
def test_an_airflow_that_fits_is_no_problem(version: str) -> None:
    """Every 3 from 3.3 on, pre-releases and builds of one's own included."""
    assert airflows.judge(version) is None


@pytest.mark.parametrize("version", ["1.10.15", "2.11.2", "3.0.6", "3.1.8", "3.2.2", "4.0.0", "10.2.0", "unknown", ""])
def test_another_airflow_is_refused(version: str) -> None:
    """The sentence names what is needed, what is there, and the remedy."""
    text = str(airflows.judge(version))
    assert text == (
        f"Lowtide's DAGs and plugin need Airflow 3.3 or newer, below 4, and this is Airflow {version}; "
        'install one that fits: pip install "apache-airflow>=3.3,<4"'
    )


def test_what_is_missing_is_named() -> None:
    """No Airflow, or one without the provider through which jobs start."""
    assert "there is none here; install one that fits" in str(airflows.judge(None))
    text = str(airflows.judge_provider(None))
    assert text.endswith("it is not installed here; install it: pip install apache-airflow-providers-apache-spark")
    assert airflows.judge_provider("6.3.4") is None


def test_what_is_installed_here_fits() -> None:
    """As the packages of this environment say."""
    assert airflows.problem() is None
    airflows.require()
    airflows.require_provider()


def test_the_wheel_asks_for_the_same() -> None:
    """The extra for Airflow has the versions that the code takes."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    least, below = ".".join(map(str, airflows.LEAST)), airflows.BELOW[0]
    assert f"apache-airflow>={least},<{below}" in extras["airflow"]
    assert any(wanted.startswith(f"{airflows.SPARK_PROVIDER}>=") for wanted in extras["airflow"])


def last_line(code: str, *arguments: str | Path, installed: str = "'3.1.8'") -> str:
    """What a program says last where packages seem to be installed in the version that *installed* gives."""
    first = f"from lowtide.run import airflows; airflows._installed = lambda package: {installed}\n"
    done = subprocess.run(
        [sys.executable, "-c", first + textwrap.dedent(code), *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


SAYS = "Lowtide's DAGs and plugin need Airflow 3.3 or newer, below 4, and this is Airflow 3.1.8; install one that fits"


@pytest.mark.parametrize("dag", DAGS, ids=lambda file: file.stem)
def test_a_dag_file_says_it_before_it_asks_for_airflow(dag: Path) -> None:
    """The sentence is what the import fails by, not the first name that this Airflow lacks."""
    code = """
        import runpy, sys
        sys.modules["airflow"] = None  # it cannot be imported
        runpy.run_path(sys.argv[1])
        """
    assert last_line(code, dag).startswith(f"lowtide.errors.UsageError: {SAYS}")


@pytest.mark.parametrize("module", ["operator", "sensors", "triggers", "hook"])
def test_a_module_for_dags_of_others_says_it_too(module: str) -> None:
    """Whoever imports an operator or a sensor is told the same."""
    code = "import importlib, sys; sys.modules['airflow'] = None; importlib.import_module(sys.argv[1])"
    assert last_line(code, f"lowtide_airflow.{module}").startswith(f"lowtide.errors.UsageError: {SAYS}")


def test_only_what_starts_jobs_needs_the_spark_provider() -> None:
    """The operator names the package; a sensor is loaded without it."""
    without = "None if package == airflows.SPARK_PROVIDER else '3.3.2'"
    code = "import importlib, sys; print(importlib.import_module(sys.argv[1]).__name__)"
    assert last_line(code, "lowtide_airflow.sensors", installed=without) == "lowtide_airflow.sensors"
    said = last_line(code, "lowtide_airflow.operator", installed=without)
    assert said == f"lowtide.errors.UsageError: {airflows.judge_provider(None)}"


def test_the_plugin_says_it_in_one_line_and_adds_nothing() -> None:
    """No error, which Airflow would log as a traceback in each process, and no import of what may be missing."""
    code = """
        import logging, sys
        sys.modules["lowtide_airflow.links"] = None  # stands on names that such an Airflow lacks
        said = []
        logging.getLogger("lowtide_airflow.plugin").addFilter(lambda record: said.append(record))
        from lowtide_airflow.plugin import LowtidePlugin as plugin
        assert not (plugin.fastapi_apps or plugin.external_views or plugin.operator_extra_links)
        (record,) = said
        assert record.levelname == "ERROR" and record.exc_info is None
        print(record.getMessage())
        """
    assert last_line(code).startswith(f"the plugin lowtide adds nothing here: {SAYS}")


def test_the_provider_offers_no_connection_that_cannot_be_loaded() -> None:
    """Its hook stands on names that such an Airflow lacks."""
    code = "from lowtide_airflow.provider import provider_info; print(sorted(provider_info()))"
    assert last_line(code) == "['description', 'name', 'package-name']"
