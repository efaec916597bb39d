"""The wheel: built, installed into a new environment, used from there, and gone without a trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel and what it needs, and a folder outside the checkout to run things in."""

    home: Path
    folder: Path

    @property
    def packages(self) -> Path:
        return next(self.home.glob("lib/python*/site-packages"))

    def run(self, *command: str | Path, **environment: str) -> str:
        """The output of a program of the environment."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "PYTHON", "LOWTIDE"))}
        given = (
            kept | {"AIRFLOW_HOME": str(self.folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"} | environment
        )
        program, *arguments = map(str, command)
        done = subprocess.run(
            [self.home / "bin" / program, *arguments],
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str, **environment: str) -> str:
        """What a program in Python prints last."""
        return self.run("python", "-c", textwrap.dedent(code), **environment).strip().splitlines()[-1]

    def commands(self) -> set[str]:
        """The commands of ``lowtide``."""
        return set(re.findall(r"^\W{0,2}(\w+) ", self.run("lowtide", "--help", TERM="dumb"), re.MULTILINE))


def uv(*arguments: str | Path) -> None:
    done = subprocess.run([UV, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "-q", "--wheel", "-o", folder)
    (wheel,) = folder.glob("*.whl")
    home = folder / "venv"
    venv.create(home, symlinks=True)
    uv("pip", "install", "-q", "--python", home / "bin" / "python", "-c", ROOT / "requirements.lock", wheel)
    return Installed(home, folder)


def test_library_and_command_line_need_neither_airflow_nor_spark(installed: Installed) -> None:
    """What the wheel asks for is enough for them, and its files are those of the environment, not of the checkout."""
    assert installed.run("lowtide", "--version").startswith("lowtide ")
    shipped = installed.packages / "lowtide" / "shipped"
    for what, pattern in (
        ("dags", "orphan_cleanup.py"),
        ("spark_apps", "orphan_cleanup.py"),
        ("monitoring", "dashboard.json"),
        ("connector", "lowtide-connector.jar"),
    ):
        printed = Path(installed.run("lowtide", "path", what).strip())
        assert printed == shipped / what
        assert (printed / pattern).is_file()
    code = """
        from lowtide.config import Config
        from lowtide.run.submit import application, class_path
        jar, lib = class_path(Config())
        print(application("watermark_collection"), jar, lib)
        """
    connector = shipped / "connector"
    found = installed.python(code).split()
    assert found == [
        f"{shipped}/spark_apps/watermark_collection.py",
        f"{connector}/lowtide-connector.jar",
        f"{connector}/lib/*",
    ]
    assert len(list((connector / "lib").glob("hbase-shaded-mapreduce-*.jar"))) == 1
    extras = "from importlib.metadata import metadata; print(*metadata('lowtide').get_all('Provides-Extra'))"
    assert set(installed.python(extras).split()) == {"airflow", "kerberos", "spark", "lab"}
    page = "from lowtide.report.page import _environment; print(len(_environment().list_templates()))"
    assert int(installed.python(page)) == 3


@pytest.fixture(scope="module")
def with_airflow(installed: Installed) -> Installed:
    """Airflow and Spark join from this environment; all of its packages but Lowtide."""
    outside = installed.folder / "outside"
    outside.mkdir()
    for package in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "lowtide" not in package.name and package.suffix != ".pth":
            (outside / package.name).symlink_to(package)
    (installed.packages / "outside.pth").write_text(f"{outside}\n")
    return installed


@pytest.mark.parametrize("checkout", [False, True], ids=["wheel", "checkout on the path"])
def test_airflow_finds_one_plugin_and_every_dag(with_airflow: Installed, checkout: bool) -> None:
    """Once, by its entry point, also where a checkout is on the path too; no listener, and no error."""
    code = """
        import lowtide
        from airflow import plugins_manager
        from airflow.dag_processing.dagbag import DagBag
        from lowtide.paths import dags
        plugins, errors = plugins_manager._get_plugins()
        named = [p for p in plugins if p.name == "lowtide"]
        bag = DagBag(dags(), known_pools={"lowtide", "default_pool"})
        listeners = [x for p in named for x in p.listeners]
        print(len(named), listeners, errors, bag.import_errors, len(bag.dags), lowtide.__file__)
        """
    # Behind the wheel, as a DAG folder or a PYTHONPATH of a server puts it.
    path = (
        {"PYTHONPATH": os.pathsep.join([str(with_airflow.packages), str(ROOT), str(ROOT / "plugins")])}
        if checkout
        else {}
    )
    dags = len(list((ROOT / "dags").glob("*.py"))) - 1  # the repair of a ledger, which no configuration has here
    expected = f"1 [] {{}} {{}} {dags} {with_airflow.packages}/lowtide/__init__.py"
    assert with_airflow.python(code, **path) == expected


def test_beside_an_airflow_that_does_not_fit_it_says_so(with_airflow: Installed) -> None:
    """Airflow has the sentence as the last line of each DAG file's import error; the plugin adds nothing, and is no
    error. (Here the packages tell of an older Airflow than the one that asks.)
    """
    told = with_airflow.packages / "apache_airflow_core-3.1.8.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-airflow-core\nVersion: 3.1.8\n")
    code = """
        from airflow import plugins_manager
        from airflow.dag_processing.dagbag import DagBag
        from lowtide.paths import dags
        plugins, errors = plugins_manager._get_plugins()
        (plugin,) = (p for p in plugins if p.name == "lowtide")
        adds = plugin.fastapi_apps + plugin.external_views + plugin.operator_extra_links + plugin.timetables
        adds += plugin.fastapi_root_middlewares
        bag = DagBag(dags(), known_pools={"lowtide", "default_pool"})
        last = {text.strip().splitlines()[-1] for text in bag.import_errors.values()}
        print(adds, errors, len(bag.dags), len(bag.import_errors), *last)
        """
    try:
        found = with_airflow.python(code)
    finally:
        shutil.rmtree(told)
    files = len(list((ROOT / "dags").glob("*.py")))
    assert found == (
        f"[] {{}} 0 {files} lowtide.errors.UsageError: Lowtide's DAGs and plugin need Airflow 3.3 or newer, below 4, "
        'and this is Airflow 3.1.8; install one that fits: pip install "apache-airflow>=3.3,<4"'
    )


def test_every_entry_point_loads(with_airflow: Installed) -> None:
    """And what Airflow asks a provider for is what its schema wants, where the wheel names one."""
    code = """
        from importlib.metadata import distribution
        points = distribution("lowtide").entry_points
        print(sorted(p.name for p in points if p.load()))
        """
    assert "lowtide" in with_airflow.python(code)


def test_the_lab_is_a_wheel_of_its_own(installed: Installed, tmp_path: Path) -> None:
    """Lowtide's has neither it nor its commands; installed beside, it brings all they need, and goes alone."""
    lab, its_commands = installed.packages / "lowtide" / "lab", {"demo", "stack", "airflow"}
    without = installed.commands()
    assert "status" in without
    assert not lab.exists()
    assert not without & its_commands
    python = installed.home / "bin" / "python"
    uv("build", "-q", "--wheel", "-o", tmp_path, ROOT / "lowtide" / "lab")
    uv(
        "pip",
        "install",
        "-q",
        "--python",
        python,
        "-c",
        ROOT / "requirements.lock",
        *tmp_path.glob("lowtide_lab-*.whl"),
    )
    assert installed.commands() == without | its_commands
    assert "stopped" in installed.run("lowtide", "stack", "down", "--home", tmp_path / "none")
    uv("pip", "uninstall", "-q", "--python", python, "lowtide-lab")
    assert not lab.exists()
    assert installed.commands() == without


def test_uninstalling_leaves_nothing(installed: Installed) -> None:
    """No file of ours stays in the environment."""
    assert list(installed.packages.glob("lowtide*"))
    uv("pip", "uninstall", "-q", "--python", installed.home / "bin" / "python", "lowtide")
    assert list(installed.packages.rglob("*lowtide*")) == []
    assert not (installed.home / "bin" / "lowtide").exists()
