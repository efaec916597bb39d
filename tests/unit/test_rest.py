"""The client of Airflow's REST API, against a server that is slow to answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lowtide.lab.airflow import dags, rest
from lowtide.lab.airflow.config import AirflowError
from lowtide.lab.airflow.dags import Dags, Run
from lowtide.lab.airflow.rest import Rest


class Slow(ThreadingHTTPServer):
    """Gives tokens at once; answers its API later than anybody waits, or *refuses* what is asked, as often as told.

    So it does with logins, and with *strangers*, whose token it does not know.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.late, self.asked = 0, list[str]()
        self.refuses = list[bytes]()
        self.strangers, self.logins, self.late_logins = 0, 0, 0


class _Answer(BaseHTTPRequestHandler):
    server: Slow

    def do_GET(self) -> None:
        self.server.asked.append(self.command)
        if self.server.late:
            self.server.late -= 1
            time.sleep(1)
        if self.server.strangers:
            self.server.strangers -= 1
            self._answer(b'{"detail": "who are you?"}', 401)
        elif self.server.refuses:
            self._answer(b'{"detail": {"reason": "%s"}}' % self.server.refuses.pop(), 500)
        else:
            self._answer(b'{"state": "success"}')

    def do_POST(self) -> None:
        if self.path == "/auth/token":
            self.server.logins += 1
            if self.server.late_logins:
                self.server.late_logins -= 1
                time.sleep(1)
            self._answer(b'{"access_token": "t"}')
        else:
            self.do_GET()

    def _answer(self, content: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        with suppress(BrokenPipeError):  # who asked has gone
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """A server that runs while the test does; nobody waits for it longer than a moment."""
    monkeypatch.setattr(rest, "_SECONDS", 0.3)
    with Slow() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def client(server: Slow) -> Rest:
    return Rest(f"http://127.0.0.1:{server.server_port}", "password")


def test_what_only_asks_is_asked_again(slow: Slow) -> None:
    """An Airflow that is busy for a moment ends nobody's waiting for a run."""
    slow.late = 2
    assert client(slow).get("dags") == {"state": "success"}
    assert slow.asked == ["GET"] * 3


def test_who_never_answers_is_named(slow: Slow) -> None:
    """After three times; what changes something is sent once, for it may have been done."""
    slow.late = 9
    with pytest.raises(AirflowError, match=rf"has not answered GET http://127.0.0.1:{slow.server_port}/api/v2/dags"):
        client(slow).get("dags")
    with pytest.raises(AirflowError, match="has not answered POST"):
        client(slow).post("dags", body={})
    assert slow.asked == ["GET"] * 3 + ["POST"]


def test_what_its_database_refused_is_asked_again(slow: Slow) -> None:
    """Whatever it was, for it was rolled back; of another error nobody knows what had been done by then."""
    slow.refuses = [b"Database error"]
    assert client(slow).post("dags", body={}) == {"state": "success"}
    assert slow.asked == ["POST"] * 2
    slow.refuses = [b"Database error"] * 9
    with pytest.raises(AirflowError, match=r"refused POST .* 500 .*Database error"):
        client(slow).post("dags", body={})
    assert slow.asked == ["POST"] * 5
    slow.refuses = [b"a mistake"]
    with pytest.raises(AirflowError, match=r"refused POST .* 500 .*a mistake"):
        client(slow).post("dags", body={})
    assert slow.asked == ["POST"] * 6


def test_an_expired_login_is_renewed_once(slow: Slow) -> None:
    """Waiting for a run may outlast a token; who is refused with a new one, too, is told so."""
    asking = client(slow)
    slow.strangers = 1
    assert asking.get("dags") == {"state": "success"}
    assert (slow.asked, slow.logins) == (["GET"] * 2, 2)
    slow.strangers = 2
    with pytest.raises(AirflowError, match=r"refused GET .* 401 .*who are you"):
        asking.get("dags")
    assert (slow.asked, slow.logins) == (["GET"] * 4, 3)


def test_a_login_that_is_not_answered_is_asked_for_again(slow: Slow) -> None:
    """It has the time limit of what is asked; nobody waits for ever."""
    slow.late_logins = 1
    assert client(slow).get("dags") == {"state": "success"}
    assert slow.logins == 2


def test_what_does_not_listen_is_named_with_the_remedy(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, whatever proxy the environment names; for the health report it is only not there."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{slow.server_port}")
    nobody = Rest("http://127.0.0.1:1", "password")
    with pytest.raises(AirflowError, match=r"does not answer at http://127.0.0.1:1 \(.*refused.*lowtide airflow up"):
        nobody.get("dags")
    assert nobody.health() == {}
    assert slow.asked == []


class _Ending(Dags):
    """Runs whose states are known beforehand, one each time they are asked for."""

    def __init__(self, **states: str) -> None:
        self._states = {name: each.split() for name, each in states.items()}

    def run(self, dag_id: str, run_id: str) -> Run:
        first, *left = self._states[run_id]
        self._states[run_id] = left or [first]
        return replace(_waiting(run_id, first), dag_id=dag_id)


def _waiting(run_id: str, state: str = "queued") -> Run:
    return Run("orphan_cleanup", run_id, "manual", state, None, None, None)


def test_runs_are_given_as_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first to end comes first; who waits for all gets them in the order in which he asked."""
    monkeypatch.setattr(dags, "_POLL_SECONDS", 0.0)
    asked = [_waiting("long"), _waiting("short"), _waiting("over", "failed")]
    states = {"long": "queued running success", "short": "success"}
    told: list[str] = []
    ended = _Ending(**states).as_they_end(asked, progress=told.append)
    assert [(run.run_id, run.state) for run in ended] == [
        ("short", "success"),
        ("over", "failed"),
        ("long", "success"),
    ]
    assert told == [f"orphan_cleanup {each}" for each in ("short: success", "long: running", "long: success")]
    assert [run.run_id for run in _Ending(**states).wait(asked)] == ["long", "short", "over"]
    with pytest.raises(AirflowError, match=r"not over after 0 s: long \(running\)"):
        _Ending(long="running").wait(asked[:1], timeout=0)
