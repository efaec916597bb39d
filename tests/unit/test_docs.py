"""The pages: made from the code where they say so, in the navigation, linked to what is there."""

from __future__ import annotations

import re
import runpy
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from lowtide.cli.app import app
from lowtide.run.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COMMANDS = get_command(app)
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])


def prose(page: Path) -> str:
    """A page without its fenced code, where a # is a comment and brackets are no links."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Target and anchor of every link and picture of a page that is not on another host."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page))):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as far as the site's generator and GitHub agree on them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE):
        text = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading)
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        site = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        github = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found |= {site} & {github}
    return found


def navigated(entry: Any) -> Iterator[str]:
    """The pages under an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from navigated(part)


def test_the_configuration_page_is_up_to_date() -> None:
    """docs/configuration.md is what tools/configuration-page writes."""
    made = runpy.run_path(str(ROOT / "tools" / "configuration-page"))
    assert (DOCS / "configuration.md").read_text() == made["page"](), "run tools/configuration-page"


def test_the_api_page_is_up_to_date() -> None:
    """docs/api.md is what tools/api-page writes."""
    made = runpy.run_path(str(ROOT / "tools" / "api-page"))
    assert (DOCS / "api.md").read_text("utf-8") == made["page"](), "run tools/api-page"


def test_every_key_of_the_configuration_is_explained() -> None:
    """No row of the page is without a word on what the key means, but where its name and the row above say it."""
    bare = re.findall(r"^\| `([\w.]+)` \| .* \|  \|$", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    assert bare == ["hbase.zookeeper_port", "hbase.thrift.port", "omid.timestamp_table", "spark.driver_memory"]


def test_every_page_is_in_the_navigation_once() -> None:
    """And nothing in the navigation is missing: a page that is not there is found by search alone."""
    listed = list(navigated(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that is there, and its anchor a heading there; pages of the site keep
    to docs/.
    """
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {path}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {path}#{anchor}"
        assert page.parent != DOCS or target.is_relative_to(DOCS), f"{page.name}: {path} is not part of the site"


def test_pages_that_are_named_are_there() -> None:
    """A page that an error, a docstring or a text names without a link exists."""
    code = [p for folder in ("lowtide", "plugins", "spark_apps", "dags") for p in ROOT.glob(f"{folder}/**/*.py")]
    named = {
        (p.name, name) for p in [*PAGES, *code] for name in re.findall(r"\bdocs/([\w-]+\.md)", p.read_text("utf-8"))
    }
    assert [n for n in sorted(named) if not (DOCS / n[1]).exists()] == []
    assert ("config.py", "configuration.md") in named


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every call of ``lowtide`` that a page shows, in blocks and within lines."""
    shown = re.findall(
        r"(?:^|`)[ ]*(?:\.venv/bin/)?lowtide ([^`\n]+?)(?=`|[ ]+#|$)", page.read_text("utf-8"), re.MULTILINE
    )
    yield from (words for text in shown if (words := re.sub(r"[\[\](){}]", " ", text.replace("\\|", " ")).split()))


def called(words: list[str]) -> tuple[Any, list[str]]:
    """The command that *words* call, None where there is none, and its arguments."""
    command: Any = COMMANDS
    while words and hasattr(command, "commands"):  # a group
        command, words = command.commands.get(words[0]), words[1:]
    return command, words


def test_pages_show_links_and_commands() -> None:
    """What the tests of them look at is there: a pattern that finds nothing would let everything pass."""
    assert sum(1 for page in PAGES for _ in links(page)) > 80
    assert {words[0] for page in PAGES for words in commands(page)} >= {
        "run",
        "status",
        "explain",
        "hold",
        "stack",
        "demo",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_pages_show_are_known(page: Path) -> None:
    """Commands, jobs and options are those of the command line; those of JOB are any job's."""
    of_jobs = {option.name for option in OPTIONS}
    for words in commands(page):
        any_job = words[:2] == ["run", "JOB"]
        command, arguments = called(words[:1] if any_job else words)
        if words[0].startswith("-") or not re.fullmatch(r"[a-z]+", words[0]):
            continue  # a sentence, or the name of something else
        assert command is not None, f"{page.name}: lowtide {' '.join(words)}"
        known = {option for param in command.params for option in param.opts}
        if any_job:
            known, arguments = known | of_jobs, words[2:]
        unknown = {a for a in arguments if a.startswith("--")} - known - {"--help"}
        assert not unknown, f"{page.name}: lowtide {' '.join(words)}: {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_pages_show_can_be_given(page: Path) -> None:
    """What is shown with options has those that the command must have; without any it is only named."""
    for words in commands(page):
        command, arguments = called(words)
        given = {a.partition("=")[0] for a in arguments if a.startswith("--")}
        needed = [p.opts for p in getattr(command, "params", ()) if p.required and p.param_type_name == "option"]
        lacking = [opts[0] for opts in needed if given and not given & {*opts, "--help"}]
        assert not lacking, f"{page.name}: lowtide {' '.join(words)}: it needs {', '.join(lacking)}"


def test_pictures_are_for_everybody() -> None:
    """Each has words for those who do not see it, follows the dark theme, and loads nothing."""
    pictures = sorted(DOCS.rglob("*.svg"))
    shown = {(page.parent / path).resolve() for page in PAGES for path, _ in links(page)}
    assert set(pictures) == {p for p in shown if p.suffix == ".svg"}
    for picture in pictures:
        text = picture.read_text("utf-8")
        assert re.search(r"<title\b.*<desc\b.*prefers-color-scheme: dark", text, re.DOTALL), picture.name
        assert not re.search(r"(href|src)=|url\((?!#)", text), picture.name


def test_screenshots_are_few_and_light() -> None:
    """Each that tools/screenshots takes or tools/dashboard-picture draws is on a page, with words for who does not see
    it; together they are below a megabyte.
    """
    text = {page: prose(page) for page in PAGES}
    taken = sorted(DOCS.rglob("*.webp"))
    for picture in taken:
        shown = [
            alt
            for page, words in text.items()
            for alt, path in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", words)
            if (page.parent / path).resolve() == picture
        ]
        assert shown, picture.name
        assert all(len(alt) > 20 for alt in shown), picture.name
    made = {*runpy.run_path(str(ROOT / "tools" / "screenshots"))["PICTURES"], "dashboard"}
    assert {p.stem for p in taken} == made
    assert sum(p.stat().st_size for p in taken) < 1_000_000


def test_the_connectors_order_names_every_class() -> None:
    """Where one package holds all classes, the list by subject in ``package-info.java`` is what tells them apart."""
    folder = ROOT / "connector/src/main/java/lowtide/connector"
    listed = set(
        re.findall(
            r"\{@(?:code|link)\s+(?:\*\s+)?(?:lowtide\.connector\.)?([A-Z]\w*)\}",
            (folder / "package-info.java").read_text(),
        )
    )
    assert listed == {file.stem for file in folder.glob("*.java")} - {"package-info"}


def test_the_readme_is_short() -> None:
    """The README is read to its end: at most 150 lines."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
