"""Airflow's REST API, as little of it as is needed."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lowtide.lab.airflow.config import USER, AirflowError

_SECONDS = 30
#: Of Airflow's answer where its database refused, as SQLite does where many write at once: what was asked is rolled
#: back.
_ROLLED_BACK = "Database error"


class _RolledBackError(AirflowError):
    """Airflow has done nothing of what was asked, and may be asked again."""


class _Login(httpx.Auth):
    """Logs in when it is first needed, and again when the token has expired."""

    requires_response_body = True

    def __init__(self, url: str, password: str) -> None:
        self._address = f"{url}/auth/token"
        self._user = {"username": USER, "password": password}
        self._token: str | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        for _ in range(2):
            if self._token is None:
                # A request of its own making has no time limit but the one it is given.
                answer = yield httpx.Request("POST", self._address, json=self._user, extensions=request.extensions)
                self._token = answer.raise_for_status().json()["access_token"]
            request.headers["Authorization"] = f"Bearer {self._token}"
            if (yield request).status_code != httpx.codes.UNAUTHORIZED:
                return
            self._token = None


class Rest:
    """A client of one Airflow, with its one user's login."""

    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._client = httpx.Client(
            headers={"Accept": "application/json"},
            timeout=_SECONDS,
            follow_redirects=True,
            # The server is on this machine: a proxy of the environment has no part in it.
            trust_env=False,
            # A connection for each question: Airflow closes one that idles, perhaps while it is asked the next, and
            # then nobody knows whether that was done.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._login = _Login(url, password)

    def get(self, *path: str, **query: Any) -> Any:
        """The answer to GET; *path* in parts, which are quoted."""
        return self._call("GET", path, query=query)

    def post(self, *path: str, body: dict[str, Any]) -> Any:
        """The answer to POST."""
        return self._call("POST", path, body)

    def patch(self, *path: str, body: dict[str, Any]) -> Any:
        """The answer to PATCH."""
        return self._call("PATCH", path, body)

    def below(self, path: str) -> Any:
        """The JSON at a path below Airflow's address: of a plugin, which is no part of the API. Errors are httpx's."""
        return self._authorised("GET", f"{self._url}/{path}", None)

    def health(self) -> dict[str, str]:
        """The state of each component by its name in the API; empty while the server does not answer."""
        try:
            answer = self._client.get(f"{self._url}/api/v2/monitor/health").raise_for_status().json()
        except httpx.HTTPError:
            return {}
        return {name: (value or {}).get("status") or "" for name, value in answer.items()}

    def _call(
        self,
        method: str,
        path: tuple[str, ...],
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> Any:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        parts = "/".join(quote(part, safe="") for part in path)
        address = str(httpx.URL(f"{self._url}/api/v2/{parts}").copy_merge_params(given))
        # What only asks is asked again, too, where Airflow, busy with its tasks, has not answered in time.
        again = (_RolledBackError, httpx.ReadTimeout) if method == "GET" else (_RolledBackError,)
        trying = Retrying(
            retry=retry_if_exception_type(again),
            stop=stop_after_attempt(3),
            wait=wait_random_exponential(0.2, max=2),
            reraise=True,
        )
        try:
            return trying(self._ask, method, address, body)
        except httpx.ReadTimeout as error:
            raise AirflowError(
                f"Airflow has not answered {method} {address} within {_SECONDS} s: it may have too much to do. "
                "Look at its page, then try again"
            ) from error
        except httpx.TransportError as error:
            raise AirflowError(f"Airflow does not answer at {self._url} ({error}); run `lowtide airflow up`") from error

    def _ask(self, method: str, address: str, body: dict[str, Any] | None) -> Any:
        try:
            return self._authorised(method, address, body)
        except httpx.HTTPStatusError as error:
            code, why = error.response.status_code, _reason(error.response)
            rolled_back = code == httpx.codes.INTERNAL_SERVER_ERROR and _ROLLED_BACK in why
            kind = _RolledBackError if rolled_back else AirflowError
            raise kind(f"Airflow refused {method} {address}: {code} {why}") from error

    def _authorised(self, method: str, address: str, body: dict[str, Any] | None) -> Any:
        answer = self._client.request(method, address, json=body, auth=self._login).raise_for_status()
        return answer.json() if answer.content else None


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:500]
