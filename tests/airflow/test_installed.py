"""What ``lowtide check`` asks of an Airflow, and how it judges a real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lowtide_airflow.installed import NUMBERS, OTHERS, problems

from lowtide.check import airflow
from lowtide.config import Config
from lowtide.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
AIRFLOW = Path(sys.executable).parent / "airflow"


def test_the_settings_are_those_of_the_page() -> None:
    """One that the page lists is none that is refused."""
    page = (ROOT / "docs/airflow.md").read_text("utf-8")
    table = page.partition("## Numbers to change")[2].partition("\n## ")[0]
    listed = {
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == {*NUMBERS, *OTHERS}


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"retrys": "2"}, "[lowtide] retrys is no setting"),
        ({"job_timeout": "12h"}, "[lowtide] job_timeout is '12h', and a whole number is expected"),
        ({"stores": "orders.yaml"}, "[lowtide] stores is 'orders.yaml'"),
        ({"batches": "0"}, "[lowtide] batches is 0, and must be 1 or more"),
        ({"batches": "1024"}, "must stay below core.max_map_length, 1024"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(section: dict[str, str], named: str) -> None:
    """Unknown, no number, none at all, or too large for Airflow."""
    [found] = problems(section, 1024)
    assert named in found
    assert list(problems({"batches": "1023", "approval": "True", "retries": 0}, 1024)) == []


def test_a_real_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose database is not there, one without the pool, and one where all is in order; the configuration is that
    of its section.
    """
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    (tmp_path / "airflow.cfg").write_text("[lowtide]\nretries = many\n")
    program = airflow.python()
    with pytest.raises(UsageError, match="Airflow cannot be asked") as error:
        airflow.ask(program)
    assert "airflow db migrate" in error.value.remedy
    run("db", "migrate")
    found = airflow.ask(program)
    with pytest.raises(UsageError, match="there is no pool lowtide") as error:
        airflow.judge_pool(found)
    with pytest.raises(UsageError, match="retries is 'many'"):
        airflow.judge_settings(found)
    assert "no spark_lowtide" in airflow.judge_connections(found, Config())
    run(*error.value.remedy.split(maxsplit=4)[1:4], "1", "One job of Lowtide at a time")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", '{"orders": "/etc/orders.yaml"}')
    with pytest.raises(UsageError, match=r"there is no pool orders\.lowtide") as error:
        airflow.judge_pool(airflow.ask(program))
    run(*error.value.remedy.split(maxsplit=4)[1:4], "2", "One job of Lowtide at a time")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__RETRIES", "3")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_LOWTIDE", '{"conn_type": "spark", "host": "yarn"}')
    monkeypatch.setenv("AIRFLOW_CONN_HBASE_DEFAULT", '{"conn_type": "hbase", "host": "elsewhere", "port": 9090}')
    found = airflow.ask(program)
    with pytest.raises(UsageError, match=r"the pool orders\.lowtide has 2 slots"):
        airflow.judge_pool(found)
    assert airflow.judge_settings(found)
    with pytest.raises(
        UsageError, match=r"hbase_default leads to elsewhere:9090, and hbase\.thrift to 127\.0\.0\.1:9090"
    ):
        airflow.judge_connections(found, Config())


def run(*arguments: str) -> None:
    done = subprocess.run([AIRFLOW, *arguments], env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
