"""The metrics of the store, where Prometheus gets them: ``/lowtide/metrics``, below Airflow's address.

Prometheus has no login of Airflow's: a token of Airflow's ends after a day, and nobody renews it there. So a token of
its own, in a file that ``metrics_token_file`` of ``[lowtide]`` names, opens this address and no other. Without the
setting, and for everybody else, it asks for what the page asks for. Nobody gets it unasked: names of tables are in it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user, requires_access_view
from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials
from starlette.exceptions import HTTPException

from lowtide.config import Config
from lowtide.monitoring.metrics import Observation
from lowtide.monitoring.text import exposition
from lowtide_airflow.cached import Cached
from lowtide_airflow.settings import text
from lowtide_airflow.view import Latest

log = logging.getLogger(__name__)

#: The setting that names the file with the token.
SETTING = "metrics_token_file"

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_scheme)]


async def may_scrape(request: Request, bearer: Bearer) -> None:
    """Let pass who bears the token, and who may see plugins.

    Raises:
        HTTPException: 401 or 403, as Airflow answers.
    """
    if bearer:
        known: bool = await run_in_threadpool(_is_token, bearer.credentials)
        if known:
            return
    try:
        user = await get_user(request, None, bearer)
    except HTTPException as error:
        if bearer:
            error.detail = f"{error.detail}; nor is it the token of the file that [lowtide] {SETTING} names"
        raise
    requires_access_view(AccessView.PLUGINS)(request, user)


def router(stores: Callable[[], Sequence[Cached[Latest]]]) -> APIRouter:
    """The address, with all of *stores* in one text, those that there are when it is asked."""
    made = APIRouter(dependencies=[Depends(may_scrape)])

    @made.get("/metrics")
    async def metrics(request: Request) -> Response:
        # At the same time: together they take no longer than the slowest may.
        latest = await asyncio.gather(*(run_in_threadpool(store.get, fresh=True) for store in stores()))
        known = [each for each in latest if each is not None]
        if latest and not known:
            raise HTTPException(503, "the store is being read for the first time; ask again")
        # What was read before is Prometheus's to remember, not to be told again.
        seen = [Observation(each.reading, each.config or Config()) for each in known]
        body, media_type = await run_in_threadpool(exposition, seen, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    return made


def _is_token(given: str) -> bool:
    """Whether it is what the file holds, read anew each time: whoever renews it starts nothing again. Nothing is where
    there is no file, or an empty one.
    """
    file = text(SETTING)
    if not file:
        return False
    try:
        token = Path(file).read_bytes().strip()
    except OSError as error:
        log.error("[lowtide] %s: cannot read %s: %s; nobody gets the metrics by token", SETTING, file, error.strerror)
        return False
    return bool(token) and hmac.compare_digest(given.encode(), token)
