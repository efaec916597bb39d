"""What the laboratory says where the jars of its servers are not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lowtide.lab.stack import machine
from lowtide.lab.stack.config import StackError


@pytest.mark.parametrize(
    ("look", "command"),
    [
        (machine.embedded_classpath, "make setup"),
        (lambda: machine.embedded_classpath("2.5"), "make hbase-2.5"),
        (machine.phoenix_classpath, "make phoenix"),
        (machine.key_centre_classpath, "make secured"),
    ],
)
def test_jars_that_are_not_there_come_from_a_checkout(
    look: Callable[[], str], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one, the command that builds them does; the wheel brings none, and its folder has no such command."""
    monkeypatch.setattr(machine, "embedded_target", lambda: tmp_path / "embedded" / "target")
    with pytest.raises(StackError, match=rf"no wheel has them, a checkout .* builds them: run `{command}` in one"):
        look()
    (tmp_path / "embedded").mkdir()
    (tmp_path / "embedded" / "pom.xml").touch()
    with pytest.raises(StackError, match=rf"; run `{command}`$"):
        look()
