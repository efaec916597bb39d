"""The rules of import in pyproject.toml speak of every room. (``lint-imports`` sees that they are kept.)"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = {
    room
    for contract in CONTRACTS
    if contract["type"] == "layers"
    for layer in contract["layers"]
    for room in re.split(r" [|:] ", layer)
}


@pytest.mark.parametrize(("package", "folder"), [("lowtide", "."), ("lowtide_spark", "spark_apps")])
def test_every_module_has_a_floor(package: str, folder: str) -> None:
    """A new room is not outside the rules: it is given its place."""
    files = [file.relative_to(ROOT / folder).with_suffix("") for file in (ROOT / folder / package).rglob("*.py")]
    modules = {".".join(file.parts) for file in files if file.name != "__init__"}
    rooms = LAYERS - {"lowtide", "lowtide_airflow", "lowtide_spark"}
    assert len(modules) > 30
    assert {m for m in modules if not any(f"{m}.".startswith(f"{room}.") for room in rooms)} == set()
