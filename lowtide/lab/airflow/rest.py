"""Airflow's REST API, as little of it as is needed, with the standard library."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lowtide.lab.airflow.config import USER, AirflowError

_SECONDS = 30
# The server is on this machine: a proxy of the environment has no part in it.
_opener = build_opener(ProxyHandler({}))
#: Of Airflow's answer where its database refused, as SQLite does where many write at once: what was asked is rolled back.
_ROLLED_BACK = "Database error"


class _RolledBackError(AirflowError):
    """Airflow has done nothing of what was asked, and may be asked again."""


class Rest:
    """A client of one Airflow; logs in when it is first needed, and again when the token has expired."""

    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._password = password
        self._token: str | None = None

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
        """The JSON at a path below Airflow's address: of a plugin, which is no part of the API."""
        return self._authorised("GET", f"{self._url}/{path}", None)

    def health(self) -> dict[str, str]:
        """The state of each component by its name in the API; empty while the server does not answer."""
        try:
            answer = self._send("GET", f"{self._url}/api/v2/monitor/health", None, {})
        except OSError:
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
        address = f"{self._url}/api/v2/{'/'.join(quote(part, safe='') for part in path)}"
        address += f"?{urlencode(given)}" if given else ""
        # What only asks is asked again, too, where Airflow, busy with its tasks, has not answered in time.
        again = (_RolledBackError, TimeoutError) if method == "GET" else (_RolledBackError,)
        trying = Retrying(
            retry=retry_if_exception_type(again),
            stop=stop_after_attempt(3),
            wait=wait_random_exponential(0.2, max=2),
            reraise=True,
        )
        try:
            return trying(self._ask, method, address, body)
        except URLError as error:
            raise AirflowError(
                f"Airflow does not answer at {self._url} ({error.reason}); run `lowtide airflow up`"
            ) from error
        except TimeoutError as error:
            raise AirflowError(
                f"Airflow has not answered {method} {address} within {_SECONDS} s: it may have too much to do. Look at its page, then try again"
            ) from error

    def _ask(self, method: str, address: str, body: dict[str, Any] | None) -> Any:
        try:
            return self._authorised(method, address, body)
        except HTTPError as error:
            why = _reason(error)
            kind = _RolledBackError if error.code == 500 and _ROLLED_BACK in why else AirflowError
            raise kind(f"Airflow refused {method} {address}: {error.code} {why}") from error

    def _authorised(self, method: str, address: str, body: dict[str, Any] | None) -> Any:
        for last in (False, True):
            if self._token is None:
                login = {"username": USER, "password": self._password}
                self._token = self._send("POST", f"{self._url}/auth/token", login, {})["access_token"]
            try:
                return self._send(method, address, body, {"Authorization": f"Bearer {self._token}"})
            except HTTPError as error:
                if error.code != 401 or last:
                    raise
                self._token = None
        return None

    @staticmethod
    def _send(method: str, address: str, body: dict[str, Any] | None, headers: dict[str, str]) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json", **headers}
        with _opener.open(Request(address, content, headers, method=method), timeout=_SECONDS) as answer:
            return json.loads(answer.read() or b"null")


def _reason(error: HTTPError) -> str:
    text = error.read().decode("utf-8", "replace")
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
