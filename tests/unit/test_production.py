"""What production consists of: everything but the lab."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from setuptools import find_packages

from lowtide import __version__

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "lowtide" / "lab"
PRODUCTION = [
    file
    for folder in ("lowtide", "plugins", "spark_apps", "dags")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if not file.is_relative_to(LAB)
]


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def imported(file: Path) -> set[str]:
    """Every module that a file imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_nothing_of_production_imports_the_lab() -> None:
    """Nor what the lab alone needs: an installation without them is whole."""
    forbidden = ("lowtide.lab", "httpx", "psutil")
    assert len(PRODUCTION) > 100
    assert {
        f"{file.relative_to(ROOT)}: {name}"
        for file in PRODUCTION
        for name in imported(file)
        if name.startswith(forbidden)
    } == set()


def test_no_frame_is_made_of_rows_of_python() -> None:
    """``createDataFrame``, ``toDF``, RDDs and functions in Python are for nodes with a Python of the driver's own kind:
    executors run none.
    """
    forbidden = {
        "createDataFrame",
        "parallelize",
        "emptyRDD",
        "rdd",
        "toDF",
        "udf",
        "pandas_udf",
        "mapInPandas",
        "foreach",
    }
    of_spark = [file for file in PRODUCTION if file.is_relative_to(ROOT / "spark_apps")]
    assert len(of_spark) > 50
    used = {
        (file.name, node.attr)
        for file in of_spark
        for node in ast.walk(ast.parse(file.read_text("utf-8").replace(".udf.registerJavaFunction(", ".java(")))
        if isinstance(node, ast.Attribute)
    }
    assert ("local.py", "range") in used
    assert {(name, attribute) for name, attribute in used if attribute in forbidden} == set()


@pytest.mark.parametrize(
    ("package", "absent"),
    [
        # `pip install lowtide`: no extra.
        ("lowtide", ("airflow", "pyspark", "pandas", "psutil", "httpx")),
        # Airflow's API server and scheduler. The provider brings pandas and a client of Spark, which nothing here uses.
        ("lowtide_airflow", ("pyspark", "pandas", "psutil")),
        # A driver: Spark, and no more.
        ("lowtide_spark", ("airflow", "pandas", "psutil", "httpx")),
    ],
)
def test_what_is_installed_is_whole_without_the_other_extras(package: str, absent: tuple[str, ...]) -> None:
    """Every module of a package can be imported where what the other extras bring cannot."""
    code = """
        import importlib, pkgutil, sys
        package, *absent = sys.argv[1:]
        sys.modules |= dict.fromkeys(absent)  # None: it cannot be imported
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.", onerror=print)
        names = [each.name for each in found if not each.name.startswith("lowtide.lab")]
        for name in names:
            importlib.import_module(name)
        print(len(names))
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), package, *absent],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 20


def test_the_command_line_does_without_the_lab() -> None:
    """Where it, or what it needs, is not installed, its commands are not there, and all others are."""
    code = """
        import sys
        from typer.main import get_command
        sys.modules |= dict.fromkeys(sys.argv[1:])  # None: it cannot be imported
        from lowtide.cli.app import app
        print(*get_command(app).commands)
        """

    def commands(*missing: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), *missing],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    everything = commands()
    assert everything >= {"demo", "stack", "airflow", "status"}
    for missing in ("lowtide.lab", "psutil"):
        assert everything - commands(missing) == {"demo", "stack", "airflow"}, missing


def test_the_wheels_divide_the_packages() -> None:
    """Each package is in one of them, and the lab's is for this very version of the other."""
    main, lab = project(ROOT), project(LAB)
    where = main["tool"]["setuptools"]["packages"]["find"]
    kept = {
        name
        for place in where["where"]
        for name in find_packages(str(ROOT / place), where["exclude"], where["include"])
    }
    left_out = set(lab["tool"]["setuptools"]["packages"])
    assert kept | left_out == {
        name for place in where["where"] for name in find_packages(str(ROOT / place), include=where["include"])
    }
    assert not kept & left_out
    assert lab["project"]["dependencies"] == [f"lowtide[lab]=={__version__}"]


def test_there_is_one_version() -> None:
    """Package, both wheels, the jars, a section of the changelog, and the files that pages name."""
    beside = [f"embedded/{name}/pom.xml" for name in ("phoenix", "hadoop", "secured")]
    poms = ("connector/pom.xml", "embedded/pom.xml", *beside)
    jars = [re.search(r"<version>(.+?)</version>", (ROOT / pom).read_text("utf-8")) for pom in poms]
    assert {project(ROOT)["project"]["version"], project(LAB)["project"]["version"]} == {__version__}
    assert {found and found[1] for found in jars} == {__version__}
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert set(re.findall(r"lowtide(?:-connector)?-(\d[\d.]*\d)", pages)) == {__version__}
    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_the_image_of_the_store_has_what_its_programs_import(tmp_path: Path) -> None:
    """Of Lowtide it has some files, and no other package at all."""
    stage = (ROOT / "docker/Dockerfile").read_text("utf-8").partition(" AS store\n")[2].partition("\nFROM ")[0]
    copied = [line.split()[1:] for line in stage.splitlines() if line.startswith("COPY lowtide/")]
    assert copied
    for *files, folder in copied:
        target = tmp_path / folder
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            (target / Path(file).name).write_bytes((ROOT / file).read_bytes())
    programs = [ROOT / "docker/healthy", ROOT / "docker/store/serve"]
    wanted = {name for program in programs for name in imported(program) if name.startswith("lowtide")}
    code = "import sys, pydoc; sys.path.insert(0, 'python'); assert all(map(pydoc.locate, sys.argv[1:]))"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, *sorted(wanted)], cwd=tmp_path, check=True)
