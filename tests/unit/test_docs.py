"""Pages that are made from the code say what the code says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_configuration_page_is_up_to_date() -> None:
    """docs/configuration.md is what tools/configuration-page writes."""
    made = runpy.run_path(str(ROOT / "tools" / "configuration-page"))
    assert (ROOT / "docs" / "configuration.md").read_text() == made["page"](), "run tools/configuration-page"


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of README and docs names a file that is there."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_is_short() -> None:
    """The README is read to its end: at most 150 lines."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
