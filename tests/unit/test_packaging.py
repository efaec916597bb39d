"""What the wheel takes along. (tests/airflow/test_wheel.py builds one and uses it.)"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_of_a_package_goes_into_the_wheel() -> None:
    """Templates, styles and pictures beside the code are named in the package data, each by a pattern that finds it."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {name: ROOT / folder for name, folder in setuptools["package-dir"].items()}
    packed = set()
    for package, patterns in setuptools["package-data"].items():
        top, *below = package.split(".")
        for pattern in patterns:
            found = set(folders[top].joinpath(*below).glob(pattern))
            assert found, f"{package}: {pattern} finds nothing"
            packed |= found
    lab = ROOT / "lowtide" / "lab"  # a wheel of its own
    beside = {
        p
        for folder in folders.values()
        for p in folder.rglob("*")
        if p.is_file() and p.suffix not in {".py", ".pyc"} and not p.is_relative_to(lab)
    }
    assert beside <= packed, sorted(str(p.relative_to(ROOT)) for p in beside - packed)
