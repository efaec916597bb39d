"""The page in a browser, with data made up and no Airflow around it: what is drawn, on which screens, and for
keyboards.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import browser, tab
from lowtide_airflow import web
from lowtide_airflow.view import Latest, view
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from plotly.offline import offline
from test_page import NOW, seen

from lowtide.cleaning.commit_count import CommitCount
from lowtide.config import Config
from lowtide.health import Reading
from lowtide.run.summary import APPROVED_BY
from lowtide.tables.consent import Pause

pytestmark = pytest.mark.needs("browser")

WEB = Path(web.__file__).parent
PLOTLY = Path(offline.__file__).parents[1] / "package_data" / "plotly.min.js"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
COUNTS = (
    CommitCount(NOW - timedelta(days=2), 1084, 370),
    CommitCount(NOW - timedelta(days=1), 1200, 400),
    CommitCount(NOW, 0, 12),
)
CHARTS = ("regions-chart", "bound-chart", "commits-chart", "work-chart")


class Site(BaseHTTPRequestHandler):
    """The page's files and one answer with its data, where Airflow has them."""

    def __init__(self, shown: dict[str, Any], *arguments: Any) -> None:
        self.shown = shown
        super().__init__(*arguments)

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].removeprefix("/lowtide/")
        file = PLOTLY if name == "plotly.js" else WEB / (name or "index.html")
        if name == "data" and self.shown.get("away"):
            self.send_error(503)
        elif name == "data":
            names = self.shown.get("stores", [""])
            chosen = parse_qs(urlsplit(self.path).query, keep_blank_values=True).get("store", names)[0]
            data = view(Latest(self.shown["seen"], Config())) | {"store": chosen, "stores": names}
            self._answer(json.dumps(data).encode(), "application/json")
        elif self.path.startswith("/api/v2/dags?"):
            dags = [{"dag_id": dag, "is_paused": False} for dag in self.shown.get("dags", ())]
            asked = parse_qs(urlsplit(self.path).query)
            first = int(asked["offset"][0])
            some = dags[
                first : first + min(100, int(asked["limit"][0]))
            ]  # as Airflow has it, however many are asked for
            self._answer(json.dumps({"dags": some, "total_entries": len(dags)}).encode(), "application/json")
        elif self.path.startswith("/lowtide/") and file.is_file():
            self._answer(file.read_bytes(), TYPES[file.suffix])
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        for name, value in {**web.HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Desk:
    """A browser before the page."""

    def __init__(self, running: Browser, address: str, shown: dict[str, Any]) -> None:
        self._browser = running
        self._address = address
        self._shown = shown
        #: What the page's scripts and the browser itself complained of.
        self.errors: list[str] = []

    def show(
        self,
        store: Reading,
        width: int = 1280,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        stores: Sequence[str] = ("",),
        dags: Sequence[str] = (),
        query: str = "",
    ) -> Page:
        self._shown |= {"seen": store, "stores": list(stores), "dags": list(dags), "away": False}
        for context in self._browser.contexts:
            context.close()
        self.errors.clear()
        page = tab(self._browser, width, height, scheme)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.goto(self._address + query)
        page.locator("body[data-ready]").wait_for()
        return page

    def next(self, store: Reading) -> None:
        """What the page finds when it asks again."""
        self._shown["seen"] = store

    def away(self) -> None:
        """Airflow has nothing for the page any more."""
        self._shown["away"] = True

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location}")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    shown: dict[str, Any] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, shown))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser() as running:
            yield Desk(running, f"http://127.0.0.1:{server.server_port}/lowtide/", shown)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_chart_is_drawn_and_fits(desk: Desk, width: int, scheme: Literal["light", "dark"]) -> None:
    """On wide and narrow screens, in the colours of the theme, without the page growing wider than the screen or an
    error.
    """
    page = desk.show(replace(seen(), commit_counts=COUNTS), width, 800, scheme)
    for chart in CHARTS:
        box = page.locator(f"#{chart} svg.main-svg").first.bounding_box()
        assert box, chart
        assert box["x"] >= 0, chart
        assert box["width"] > width / 2, chart
        assert box["x"] + box["width"] <= width, chart
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    ink = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    assert ink == {"light": "#13242c", "dark": "#e4ecec"}[scheme]
    assert page.locator("#commits-chart").evaluate("chart => chart.layout.font.color") == ink
    assert desk.errors == []


def test_notes_of_one_cause_are_one_note(desk: Desk) -> None:
    """Three pauses are one paragraph with three lines, what is to be done about them once, each command in it."""
    pauses = tuple(Pause(f"p{n}", f"t{n}", "ann", "a reason", NOW, NOW + timedelta(hours=n)) for n in (1, 2, 3))
    page = desk.show(replace(seen(), pauses=pauses))
    note = page.locator("#findings > ul > li[data-cause=paused]")
    expect(note).to_have_count(1)
    expect(note.locator("ul.alike li")).to_have_count(3)
    assert sorted(note.locator("pre").inner_text().split("\n")) == [f"lowtide resume p{n}" for n in (1, 2, 3)]
    assert desk.errors == []


def test_the_commit_tables_counts_are_drawn_and_told(desk: Desk) -> None:
    """A line each for entries and marks, told apart by more than colour; in the table the newest is first."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    lines = page.locator("#commits-chart").evaluate(
        "chart => chart.data.map(t => [t.name, t.y, t.line.dash, t.marker.symbol])"
    )
    assert lines == [
        ["commit entries", [1084, 1200, 0], "solid", "circle"],
        ["invalidation marks", [370, 400, 12], "dot", "square"],
    ]
    page.locator("#commits summary").click()
    rows = [row.locator("td, th").all_inner_texts() for row in page.locator("#counts tbody tr").all()]
    assert [row[1:] for row in rows] == [["0", "12"], ["1,200", "400"], ["1,084", "370"]]
    assert rows[0][0] == "2026-03-10 12:00:00 UTC"
    expect(page.locator("#commits-none")).to_be_hidden()


def test_a_store_without_counts_says_so(desk: Desk) -> None:
    """In words, with what would make one; there is no empty chart."""
    page = desk.show(seen())
    expect(page.locator("#commits-none")).to_contain_text("commit_table_pruning")
    expect(page.locator("#commits-none")).to_be_visible()
    expect(page.locator("#commits-chart")).to_be_hidden()
    expect(page.locator("#commits-chart svg")).to_have_count(0)


#: Everything that reacts to a click or scrolls by itself, as far as it is to be seen.
CONTROLS = "a[href]:visible, button:visible, summary:visible, [tabindex='0']:visible"


def test_every_control_is_reached_by_tab_and_seen(desk: Desk) -> None:
    """In the order of the page, each with an outline around it; nothing else holds the focus."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    wanted = page.locator(CONTROLS).evaluate_all("all => all.map((e, i) => (e.dataset.number = i))")
    assert len(wanted) >= 8
    reached = []
    for _ in wanted:
        page.keyboard.press("Tab")
        number, tag, style, width = page.locator(":focus").evaluate(
            "e => [e.dataset.number, e.outerHTML.slice(0, 80), getComputedStyle(e).outlineStyle, "
            "parseFloat(getComputedStyle(e).outlineWidth)]"
        )
        reached.append(int(number))
        assert style not in ("none", "hidden"), tag
        assert width >= 1, tag
    assert reached == wanted


def test_the_keyboard_works_the_page(desk: Desk) -> None:
    """The first stop leads past the head of the page; a chart's numbers are opened by Enter."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.locator("#commits summary").press("Enter")
    expect(page.locator("#counts")).to_be_visible()


def test_a_store_is_chosen_where_there_are_several(desk: Desk) -> None:
    """By the address, as a task's link has it, or from the list, which has a name for who hears it; the DAGs are those
    of the store. Of one store there is nothing to choose.
    """
    dags = ["orphan_cleanup", "east.orphan_cleanup", "east-2.orphan_cleanup"]
    page = desk.show(seen(), stores=["", "east", "east-2"], dags=dags, query="?store=east-2")
    choice = page.get_by_label("Store")
    expect(choice).to_have_value("east-2")
    expect(page.locator("#daglist tbody tr")).to_have_text([re.compile("^east-2.orphan_cleanup")])
    choice.select_option("")
    expect(page.locator("#daglist tbody tr")).to_have_text([re.compile("^orphan_cleanup")])
    expect(choice.locator("option")).to_have_text(["of LOWTIDE_CONFIG", "east", "east-2"])
    expect(desk.show(seen()).get_by_label("Store")).to_be_hidden()
    assert desk.errors == []


def test_health_is_unknown_while_airflow_does_not_answer(desk: Desk) -> None:
    """What was read before stays, with its time; that all is well is not said any more."""
    page = desk.show(seen())
    read = page.locator("#asof").inner_text()
    assert read.startswith("read 2026-03-10 12:00")
    desk.away()
    page.get_by_role("button", name="Read again").click()
    expect(page.locator("#health")).to_have_class("unknown")
    expect(page.locator("#health")).to_contain_text("Airflow does not answer (Airflow answered 503)")
    expect(page.locator("#health")).not_to_contain_text("✓")
    expect(page.locator("#asof")).to_have_text(read)
    expect(page.locator("#runs")).to_be_visible()


def test_who_ran_a_job_is_read_without_a_mouse(desk: Desk) -> None:
    """It stands in the table, not behind a pointer that rests on it; by whom a plan was approved, too."""
    (ran,) = seen().runs
    by = {"user": "ann", "host": "edge1", "lowtide": "0.2.0", "config": "lowtide.yaml"}
    approved = {**ran, "by": by, "context": {**ran["context"], APPROVED_BY: "Bea Lee"}}
    page = desk.show(replace(seen(), runs=(approved,)))
    expect(page.locator("#runs tbody")).to_contain_text("ann@edge1, approved by Bea Lee, Lowtide 0.2.0")


def test_of_thousands_of_tables_the_chart_shows_those_furthest_behind(desk: Desk) -> None:
    """A hundred of them, as high as a hundred are; what is not drawn is said, and every table is in the table."""
    many = seen(1500, 1)
    page = desk.show(many)
    expect(page.locator("#regions-more")).to_have_text(
        "Drawn are the 100 tables furthest behind, of 1,500; the others are in the table below."
    )
    box = page.locator("#regions-chart").bounding_box()
    assert box is not None
    assert box["height"] < 130 + 26 * 100 + 20
    assert page.locator("#tables tbody tr").count() == 1500
    assert desk.errors == []
    expect(desk.show(seen(3)).locator("#regions-more")).to_be_hidden()


def test_what_a_reader_has_marked_stays_while_the_page_is_drawn_anew(desk: Desk) -> None:
    """The focus and the selection, in what is still the same; what has changed is drawn."""
    page = desk.show(seen(2))
    link = page.locator("#runs a").first
    link.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#runs tbody td'))")
    marked = page.evaluate("getSelection().toString()")
    assert marked
    first = page.locator("body").get_attribute("data-ready")
    desk.next(replace(seen(3), at=NOW + timedelta(minutes=1)))
    page.evaluate("load()")
    page.wait_for_function("was => document.body.dataset.ready !== was", arg=first)
    assert page.evaluate("getSelection().toString()") == marked
    expect(link).to_be_focused()
    assert page.locator("#tables tbody tr").count() == 3
    desk.next(replace(seen(1), at=NOW + timedelta(minutes=2)))
    page.evaluate("load()")
    expect(page.locator("#asof")).to_contain_text("12:02")
    assert page.locator("#tables tbody tr").count() == 1
    assert desk.errors == []


def test_the_dags_of_a_store_are_found_behind_a_hundred_others(desk: Desk) -> None:
    """Airflow gives a hundred at a time, of all stores."""
    dags = [*(f"a{n:03}.orphan_cleanup" for n in range(250)), "z.orphan_cleanup"]
    page = desk.show(seen(1), stores=[*(f"a{n:03}" for n in range(250)), "z"], dags=dags, query="?store=z")
    expect(page.locator("#daglist tbody tr")).to_have_count(1)
    expect(page.locator("#daglist")).to_contain_text("z.orphan_cleanup")
    assert desk.errors == []
