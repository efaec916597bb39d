"""The page "Lowtide" in Airflow: a few files, and one answer with all data of a store.

Airflow gives a plugin's application no login of its own, so every route here, files too, asks for Airflow's: who may
not see plugins gets 401 or 403. The metrics alone have a token of their own beside it (:mod:`lowtide_airflow.scraped`).
The data are read in the background (:mod:`lowtide_airflow.cached`): a store that is
down or slow costs Airflow's server one thread, and a request never waits for it longer than a moment. What the page
gets of a reading is made once, and never on the server's event loop: of thousands of tables it takes a second.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.exceptions import HTTPException

from lowtide.errors import UsageError
from lowtide_airflow import scraped, stores
from lowtide_airflow.cached import Cached
from lowtide_airflow.settings import number
from lowtide_airflow.view import Latest, Reader, view

log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_FILES = {
    "page.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
    "icon-dark.svg": "image/svg+xml",
}
#: What the page and its files are sent with.
HEADERS = {
    # Nothing from another host. The charts' library writes style attributes and draws to blobs.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class Answers:
    """What the page gets of each store, as bytes, made once of each reading; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Latest | None, Sequence[str], bytes]] = {}

    def of(self, latest: Latest | None, store: str, stores: Sequence[str]) -> bytes:
        """The answer of the reading *latest* of *store*, of those that there are; None: it is still under way."""
        with self._lock:
            known = self._made.get(store)
            if known is not None and known[0] is latest and known[1] == stores:
                return known[2]
            data = {**view(latest), "store": store, "stores": stores}
            text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            self._made[store] = (latest, stores, text.encode())
            return self._made[store][2]


class Stores:
    """What was read last of each store that this Airflow serves; each is first read when it is first asked for."""

    def __init__(self) -> None:
        self._seen: dict[str, Cached[Latest]] = {}

    def names(self) -> list[str]:
        """Those that there are now; of a section that names none that can be used, the nameless one."""
        try:
            return stores.served()
        except UsageError as error:
            log.error("only the store of LOWTIDE_CONFIG is read: %s", error)
            return [""]

    def of(self, name: str) -> Cached[Latest]:
        """The one of that name."""
        if name not in self._seen:
            self._seen[name] = Cached(Reader(name), seconds=number("page_seconds", 30))
        return self._seen[name]

    def all(self) -> list[Cached[Latest]]:
        """All that there are now."""
        return [self.of(name) for name in self.names()]


def application() -> FastAPI:
    """The application, with a cache of its own for each store."""
    known = Stores()
    app = FastAPI(title="Lowtide", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(scraped.router(known.all))
    app.include_router(_page(known))  # the last: it has what bears any other name
    return app


def _page(known: Stores) -> APIRouter:
    """Page, files and data."""
    answers = Answers()
    pages = APIRouter(dependencies=[Depends(requires_access_view(AccessView.PLUGINS))])

    @pages.get("/")
    def page() -> HTMLResponse:
        return HTMLResponse((_HERE / "index.html").read_text("utf-8"), headers=HEADERS)

    @pages.get("/data")
    def data(store: str | None = None) -> Response:
        names = known.names()
        chosen = names[0] if store is None else store
        if chosen not in names:
            raise HTTPException(404, f"no store {chosen}")
        # Fresh: who comes back after an hour, or asks to read again, is not shown what was read before.
        latest = known.of(chosen).get(fresh=True)
        return Response(answers.of(latest, chosen, names), media_type="application/json")

    @pages.get("/plotly.js")
    def plotly() -> FileResponse:
        from plotly.offline import offline

        # As installed beside us: the address changes with nothing, so browsers ask whether it did.
        file = Path(offline.__file__).parents[1] / "package_data" / "plotly.min.js"
        return FileResponse(file, media_type="text/javascript", headers={"Cache-Control": "private, max-age=86400"})

    @pages.get("/{name}")
    def file(name: str) -> FileResponse:
        if name not in _FILES:
            raise HTTPException(404, f"no file {name}")
        return FileResponse(_HERE / name, media_type=_FILES[name], headers={**HEADERS, "Cache-Control": "no-cache"})

    return pages
