"""The page in a browser, with data made up and no Airflow around it: what is drawn, on which screens, and for keyboards."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from lowtide_airflow import web
from lowtide_airflow.view import Reading, view
from plotly.offline import offline
from test_page import NOW, seen

from lowtide.commitcount import CommitCount
from lowtide.config import Config
from lowtide.health import Seen

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
        if name == "data":
            self._answer(json.dumps(view(Reading(self.shown["seen"], Config()))).encode(), "application/json")
        elif self.path.startswith("/lowtide/") and file.is_file():
            self._answer(file.read_bytes(), TYPES[file.suffix])
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Desk:
    """A browser before the page."""

    def __init__(self, page: Browser, address: str, shown: dict[str, Any]) -> None:
        self.page = page
        self._address = address
        self._shown = shown

    def show(self, store: Seen, width: int = 1280, height: int = 900, scheme: str = "light") -> Browser:
        self._shown["seen"] = store
        self.page.look(width, height, scheme)
        self.page.open("about:blank")
        self.page.open(self._address)
        self.page.await_value("document.body && document.body.dataset.ready")
        return self.page


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    shown: dict[str, Any] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, shown))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser(tmp_path_factory.mktemp("profile")) as page:
            yield Desk(page, f"http://127.0.0.1:{server.server_port}/lowtide/", shown)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_chart_is_drawn_and_fits(desk: Desk, width: int, scheme: str) -> None:
    """On wide and narrow screens, in the colours of the theme, without the page growing wider than the screen."""
    page = desk.show(replace(seen(), commit_counts=COUNTS), width, 800, scheme)
    for chart in CHARTS:
        left, right = page.value(
            f"(r => [r.left, r.right])(document.querySelector('#{chart} svg.main-svg').getBoundingClientRect())"
        )
        assert left >= 0, chart
        assert right - left > width / 2, chart
        assert right <= width, chart
    assert page.value("document.scrollingElement.scrollWidth") <= width
    ink = page.value("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    assert ink == {"light": "#13242c", "dark": "#e4ecec"}[scheme]
    assert page.value("document.querySelector('#commits-chart').layout.font.color") == ink
    assert [e for e in page.errors if "Refused" in e or "Error" in e] == []


def test_the_commit_tables_counts_are_drawn_and_told(desk: Desk) -> None:
    """A line each for entries and marks, told apart by more than colour; in the table the newest is first."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    lines = page.value(
        "document.querySelector('#commits-chart').data.map(t => [t.name, t.y, t.line.dash, t.marker.symbol])"
    )
    assert lines == [
        ["commit entries", [1084, 1200, 0], "solid", "circle"],
        ["invalidation marks", [370, 400, 12], "dot", "square"],
    ]
    page.value("document.querySelector('#commits summary').click()")
    rows = page.value("[...document.querySelectorAll('#counts tbody tr')].map(r => [...r.cells].map(c => c.innerText))")
    assert [row[1:] for row in rows] == [["0", "12"], ["1,200", "400"], ["1,084", "370"]]
    assert rows[0][0] == "2026-03-10 12:00:00 UTC"
    assert not page.value("document.querySelector('#commits-none').checkVisibility()")


def test_a_store_without_counts_says_so(desk: Desk) -> None:
    """In words, with what would make one; there is no empty chart."""
    page = desk.show(seen())
    assert "commit_table_pruning" in page.value("document.querySelector('#commits-none').innerText")
    assert not page.value("document.querySelector('#commits-chart').checkVisibility()")
    assert page.value("document.querySelectorAll('#commits-chart svg').length") == 0


#: Everything that reacts to a click or scrolls by itself, as far as it is to be seen.
CONTROLS = (
    "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')].filter(e => e.checkVisibility())"
)


def test_every_control_is_reached_by_tab_and_seen(desk: Desk) -> None:
    """In the order of the page, each with an outline around it; nothing else holds the focus."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    page.value(f"{CONTROLS}.forEach((e, i) => (e.dataset.number = i))")
    wanted = page.value(f"{CONTROLS}.length")
    assert wanted >= 8
    reached = []
    for _ in range(wanted):
        page.key("Tab", 9)
        number, tag, style, width = page.value(
            "(e => [e.dataset.number, e.outerHTML.slice(0, 80), getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)])"
            "(document.activeElement)"
        )
        reached.append(int(number))
        assert style not in ("none", "hidden"), tag
        assert width >= 1, tag
    assert reached == list(range(wanted))


def test_the_keyboard_works_the_page(desk: Desk) -> None:
    """The first stop leads past the head of the page; a chart's numbers are opened by Enter."""
    page = desk.show(replace(seen(), commit_counts=COUNTS))
    page.key("Tab", 9)
    assert page.value("(r => r.left >= 0 && r.top >= 0)(document.activeElement.getBoundingClientRect())")
    page.key("Enter", 13, "\r")
    page.await_value("document.activeElement.id === 'main'")
    page.value("document.querySelector('#commits summary').focus()")
    page.key("Enter", 13, "\r")
    page.await_value("document.querySelector('#counts').checkVisibility()")
