"""The metrics at ``/lowtide/metrics``: who gets them, and what. (A real Airflow and its store: test_runs.py.)"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from jwt import InvalidTokenError
from lowtide_airflow import scraped
from lowtide_airflow.cached import Cached
from lowtide_airflow.metrics import Kind, metrics
from lowtide_airflow.view import Latest
from lowtide_airflow.web import application
from test_metrics import summary

from lowtide.cleaning.commit_count import CommitCount, count_figures
from lowtide.config import Config
from lowtide.health import Reading
from lowtide.lab.stack import free_ports_config
from lowtide.ledger.settled import SETTLED_FIGURE, money_figure
from lowtide.monitoring.metrics import GAUGES
from lowtide.run.summary import TableReport
from lowtide.values.clock import millis

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TOKEN = "a-token-of-prometheus"
LOGGED_IN = "a-token-of-airflow"


class Manager:
    """An auth manager that knows one token, of a user who may or may not see plugins."""

    allowed = True

    async def get_user_from_token(self, token: str) -> str:
        if token != LOGGED_IN:
            raise InvalidTokenError
        return "somebody"

    def is_authorized_view(self, *, access_view: object, user: object) -> bool:
        return self.allowed and (getattr(access_view, "value", access_view), user) == ("PLUGINS", "somebody")


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Manager:
    made = Manager()
    monkeypatch.setattr("airflow.api_fastapi.core_api.security.get_auth_manager", lambda: made)
    return made


@pytest.fixture
def client(manager: Manager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TestClient:
    """Of the whole application, whose store is down."""
    file = tmp_path / "lowtide.yaml"
    port = free_ports_config(tmp_path).thrift_port
    file.write_text(f"store: orders-prod\nhbase: {{thrift: {{port: {port}}}}}\n")
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    return TestClient(application())


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the token, which the setting names."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__METRICS_TOKEN_FILE", str(file))
    return file


def get(client: TestClient, bearer: str = "", route: str = "/metrics") -> tuple[int, str]:
    answer = client.get(route, headers={"Authorization": f"Bearer {bearer}"} if bearer else {})
    return answer.status_code, answer.text


# -- who


def test_without_a_login_and_without_a_token_nobody_gets_the_metrics(client: TestClient, token: Path) -> None:
    """Names of tables are in them. A wrong token is told which two there are."""
    assert get(client)[0] == 401
    code, said = get(client, "guessed")
    assert code == 403
    assert "nor is it the token of the file that [lowtide] metrics_token_file names" in said
    assert "lowtide_up" not in said


def test_the_token_opens_the_metrics_and_nothing_else(client: TestClient, token: Path) -> None:
    """Whoever has it sees no page and no file."""
    assert get(client, TOKEN)[0] == 200
    for route in ("/", "/data", "/page.js", "/nosuchfile"):
        assert get(client, TOKEN, route)[0] == 403


def test_a_token_that_is_renewed_holds_at_once(client: TestClient, token: Path) -> None:
    """And the one of before no more."""
    assert get(client, TOKEN)[0] == 200
    token.write_text("another")
    assert get(client, TOKEN)[0] == 403
    assert get(client, "another")[0] == 200


@pytest.mark.parametrize("content", ["", "\n", None], ids=["empty", "blank", "missing"])
def test_a_file_without_a_token_opens_nothing(
    client: TestClient, token: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Also not to an empty token; one that cannot be read is logged by name."""
    token.write_text(content) if content is not None else token.unlink()
    with caplog.at_level(logging.ERROR, scraped.log.name):
        for bearer in ("", " ", "\n", TOKEN):
            answer = client.get("/metrics", headers={"Authorization": f"Bearer {bearer}".encode("latin-1").strip()})
            assert answer.status_code in (401, 403), bearer
        assert not scraped._is_token(""), "should a server hand on an empty one"
    assert (f"cannot read {token}: No such file" in caplog.text) == (content is None)


def test_who_may_see_plugins_gets_the_metrics_without_a_token(client: TestClient, manager: Manager) -> None:
    """With Airflow's own permission, where no token is set."""
    assert get(client, LOGGED_IN)[0] == 200
    manager.allowed = False
    assert get(client, LOGGED_IN)[0] == 403


# -- what


def test_a_store_that_is_down_is_told_and_is_no_error(client: TestClient, token: Path) -> None:
    """Prometheus would take an error for Airflow's, not for the store's."""
    code, said = get(client, TOKEN)
    assert code == 200
    assert 'lowtide_up{store="orders-prod"} 0.0' in said
    assert 'cause="gateway-down"' in said


def test_a_configuration_that_cannot_be_read_is_a_store_that_is_down(
    client: TestClient, token: Path, tmp_path: Path
) -> None:
    """Under the name that a store has which is given none."""
    (tmp_path / "lowtide.yaml").write_text("hbaze: {}\n")
    code, said = get(client, TOKEN)
    assert (code, 'lowtide_up{store="default"} 0.0' in said) == (200, True)


def served(*stores: Callable[[], Latest], patience: float = 20, seconds: float = 30) -> TestClient:
    app = FastAPI()
    caches = [Cached(store, seconds, patience=patience) for store in stores]
    app.include_router(scraped.router(lambda: caches))
    return TestClient(app)


def latest(store: str, reading: Reading | None = None, before: Reading | None = None) -> Latest:
    return Latest(reading or Reading(NOW), Config.model_validate({"store": store}), before)


def test_several_stores_are_served_together(manager: Manager, token: Path) -> None:
    """Each by its name; one that is down keeps none of the others back, and shows nothing of before."""
    down = latest("b", Reading(NOW, unreachable="no answer"), Reading(NOW, low_watermark=7, state_format=3))
    code, said = get(served(lambda: latest("a"), lambda: down), TOKEN)
    assert code == 200
    assert 'lowtide_up{store="a"} 1.0\nlowtide_up{store="b"} 0.0\n' in said
    assert 'lowtide_state_format{store="b"}' not in said


def test_prometheus_gets_its_own_format(manager: Manager, token: Path) -> None:
    """What it asks for is what the answer says it is."""
    client = served(lambda: latest("a"))
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}", "Accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")


def test_a_first_reading_that_takes_long_is_said(manager: Manager, token: Path) -> None:
    """Nothing is known of the store then, not even that it is down."""
    free = threading.Event()

    def slow() -> Latest:
        assert free.wait(20)
        return latest("a")

    client = served(slow, patience=0.05)
    assert get(client, TOKEN) == (503, '{"detail":"the store is being read for the first time; ask again"}')
    free.set()
    while get(client, TOKEN)[0] == 503:
        pass
    assert get(client, TOKEN)[0] == 200


def test_stores_that_hang_cost_the_others_nothing(manager: Manager, token: Path) -> None:
    """Neither their series, nor the time of each of them: all are asked at once, and one of which nothing is known yet
    is left out.
    """
    free, asked = threading.Event(), threading.Barrier(4)

    def slow() -> Latest:
        asked.wait(20)  # broken where one is asked after the other: nobody else comes
        assert free.wait(20)
        return latest("slow")

    def quick() -> Latest:
        asked.wait(20)
        return latest("a")

    client = served(quick, slow, slow, slow, patience=5)
    code, said = get(client, TOKEN)
    free.set()
    assert (code, 'lowtide_up{store="a"} 1.0' in said, "slow" in said) == (200, True, False)


def test_who_asks_seldom_gets_what_is_so_now(manager: Manager, token: Path) -> None:
    """Not what was so when it asked the time before."""
    formats = iter(range(1, 9))
    client = served(lambda: latest("a", Reading(NOW, state_format=next(formats))), seconds=0)
    assert [f'"a"}} {n}.0' in get(client, TOKEN)[1] for n in (1, 2, 3)] == [True] * 3


def test_airflows_metrics_have_the_same_names() -> None:
    """Each gauge of a job's summary is a metric here, with underscores for dots and the same tags for labels."""
    low = millis(NOW) * 1_000_000
    report = TableReport("orders", mark={"mark": low - 9, "applied": low - 9, "held_by": []}, execute=True)
    figures = {SETTLED_FIGURE: millis(NOW), **dict.fromkeys(money_figure("after"), 1)}
    figures |= count_figures("left", CommitCount(NOW, 1, 2))
    told = metrics(summary("history_gc", low_watermark=low, bound=low - 9, tables=[report], figures=figures))
    gauges = {(m.name.replace(".", "_"), tuple(m.tags)) for m in told if m.kind is Kind.GAUGE}
    assert len(gauges) == 9
    assert gauges <= {(g.name, g.labels) for g in GAUGES}
