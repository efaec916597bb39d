"""The Airflow plugin ``lowtide``, found by its entry point.

The scheduler, the API server and every worker import this module: it must stay free of Spark, of happybase, of FastAPI
and of the metadata database; the page is made when it is first asked for. It registers no listener: one listener makes
DAGs with ``end_from_trigger`` fail, in the whole installation.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from lowtide_airflow.links import PageLink

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


class LowtidePlugin(AirflowPlugin):
    """The tab "Lowtide" in Airflow's navigation, and the link to it from a task."""

    name = "lowtide"
    fastapi_apps = [{"app": _Page(), "url_prefix": PREFIX, "name": "Lowtide"}]  # noqa: RUF012 - as Airflow declares it
    external_views = [  # noqa: RUF012
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
    operator_extra_links = [PageLink()]  # noqa: RUF012
