"""What the Java parts write into rows, keys and JSON is the same whatever the machine's locale is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Calls that go by the machine's locale: digits are others in some, and an I has another small letter in Turkish.
BY_LOCALE = re.compile(
    r"String\.format\((?!\s*Locale\.ROOT)|\.formatted\(|\.printf\((?!\s*Locale\.ROOT)|\.to(?:Lower|Upper)Case\(\)"
    r"|new Formatter\(|DateTimeFormatter\.ofPattern\((?!.*Locale\.ROOT)|new (?:Simple)?D(?:ate|ecimal)Format\("
)


@pytest.mark.parametrize("folder", ["connector", "embedded"])
def test_no_call_goes_by_the_machines_locale(folder: str) -> None:
    """Each one that formats or changes case names a locale; with others' digits, rows would be looked for in vain."""
    files = sorted((ROOT / folder / "src" / "main").rglob("*.java"))
    assert files
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if BY_LOCALE.search(line)
    ]
    assert not found, "give Locale.ROOT"


@pytest.mark.parametrize(
    ("call", "caught"),
    [
        ('String.format("%d", n)', True),
        ('"%d".formatted(n)', True),
        ("name.toLowerCase()", True),
        ('out.printf("%d", n)', True),
        ('String.format(Locale.ROOT, "%d", n)', False),
        ("name.toUpperCase(Locale.ROOT)", False),
    ],
)
def test_such_a_call_is_known(call: str, caught: bool) -> None:
    """By what it looks like."""
    assert bool(BY_LOCALE.search(call)) is caught
