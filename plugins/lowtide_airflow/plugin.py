"""The Airflow plugin ``lowtide``, found by its entry point.

The scheduler, the API server and every worker import this module: it must stay free of Spark, of happybase, of FastAPI
and of the metadata database; the page is made when it is first asked for. It registers no listener: one listener makes
DAGs with ``end_from_trigger`` fail, in the whole installation.

In an Airflow that it is not written for it adds nothing and logs one line that says so: an error here would be a
traceback in the log of each of Airflow's processes.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from lowtide.run import airflows
from lowtide_airflow.pools import with_pools

log = logging.getLogger(__name__)

#: Where the page is, below the address of Airflow.
PREFIX = "/lowtide"


class _Page:
    """An ASGI application that imports the real one, :mod:`lowtide_airflow.web`, at its first request."""

    _app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            from lowtide_airflow.web import application

            self._app = application()
        await self._app(scope, receive, send)


if wrong := airflows.problem():
    log.error("the plugin lowtide adds nothing here: %s", wrong)


def _links() -> list[Any]:
    from lowtide_airflow.links import PageLink  # stands on names that an Airflow may lack

    return [PageLink()]


def _timetables() -> list[Any]:
    from lowtide_airflow.timetable import JobTimetable

    return [JobTimetable]


class LowtidePlugin(AirflowPlugin):
    """The tab "Lowtide" in Airflow's navigation and the link to it from a task, the timetable of the DAGs, and their
    pools; none of it where Airflow does not fit.
    """

    name = "lowtide"
    fastapi_apps = [] if wrong else [{"app": _Page(), "url_prefix": PREFIX, "name": "Lowtide"}]
    external_views = (
        []
        if wrong
        else [
            {
                "name": "Lowtide",
                # Relative: Airflow may live below a path.
                "href": f"{PREFIX.strip('/')}/",
                "destination": "nav",
                "nav_top_level": True,
                "url_route": "lowtide",
                "icon": f"{PREFIX.strip('/')}/icon.svg",
                "icon_dark_mode": f"{PREFIX.strip('/')}/icon-dark.svg",
            }
        ]
    )
    operator_extra_links = [] if wrong else _links()
    timetables = [] if wrong else _timetables()
    fastapi_root_middlewares = [] if wrong else [{"middleware": with_pools, "name": "Lowtide's pools"}]
