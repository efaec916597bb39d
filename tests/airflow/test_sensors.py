"""Sensors, triggers, watchers and the hook as far as they need no store and no server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk import DAG, Asset, AssetWatcher, BaseHook, Connection
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from airflow.serialization.serialized_objects import DagSerialization
from lowtide_airflow import sensors, triggers
from lowtide_airflow.hook import HBaseHook, merged
from lowtide_airflow.triggers import ConditionTrigger, ConditionWatcher

from lowtide.config import Config, load
from lowtide.errors import GatewayError, StoreError, UnnamedStoreError, UsageError
from lowtide.health.conditions import CheckResult, CommitTableLarger, TransactionsSettled
from lowtide.ledger.model import transaction_id

TIME = "2026-01-31T00:00:00+00:00"
SENSORS: dict[type[sensors.ConditionSensor], dict[str, Any]] = {
    sensors.TransactionsSettledSensor: {"before": TIME},
    sensors.TransactionsStuckSensor: {"older_than": "15m", "more_than": 3},
    sensors.TransactionStateSensor: {"transaction": transaction_id("a" * 40, 1)},
    sensors.LowWatermarkSensor: {"past": TIME},
    sensors.RegionWatermarkSensor: {"table": "orders", "past": TIME},
    sensors.CommitTableSensor: {"larger_than": 5},
}
HOLDS, NOT_YET = CheckResult(True, "it holds", 1), CheckResult(False, "not yet", 0)
HOPELESS = CheckResult(False, "dropped", 0, never=True)
AWAY = GatewayError("the gateway is away")
_CONDITION = CommitTableLarger(than=5).to_json()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """What each look comes to, one after the other, the last again and again; pauses take no time. Gives the list of
    looks.
    """

    def script(*answers: Any) -> list[Any]:
        done: list[Any] = []
        waiting = list(answers)

        def check(condition: Any, config: Any) -> CheckResult:
            done.append(condition)
            answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        for module in (sensors, triggers):
            monkeypatch.setattr(module, "check", check)
        return done

    async def at_once(_: float) -> None:
        return None

    def unknown(name: str) -> Any:
        raise AirflowNotFoundException(name)

    async def unknown_too(name: str) -> Any:
        raise AirflowNotFoundException(name)

    monkeypatch.setattr(sensors.time, "sleep", lambda _: None)
    monkeypatch.setattr(triggers.asyncio, "sleep", at_once)
    monkeypatch.setattr(BaseHook, "get_connection", staticmethod(unknown))
    monkeypatch.setattr(BaseHook, "aget_connection", staticmethod(unknown_too))
    return script


def sensor(**arguments: Any) -> sensors.ConditionSensor:
    return sensors.CommitTableSensor(task_id="wait", larger_than=5, poke_interval=1, **arguments)


@pytest.mark.parametrize(("kind", "arguments"), SENSORS.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_every_sensor_makes_its_condition_and_goes_into_a_dag(
    kind: type[sensors.ConditionSensor], arguments: dict[str, Any]
) -> None:
    """Its settings are the condition's; text settings are templated; the scheduler can hold it."""
    with DAG("sensing", schedule=None) as dag:
        made = kind(task_id="wait", **arguments)
    condition = made.condition().to_json()
    assert set(arguments.values()) <= set(condition.values())
    assert {name for name, value in arguments.items() if isinstance(value, str)} <= set(made.template_fields)
    DagSerialization.from_dict(DagSerialization.to_dict(dag))


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_condition_that_holds_ends_the_sensor_at_once(looks: Callable[..., list[Any]], deferrable: bool) -> None:
    """No worker is kept and nothing is deferred."""
    done = looks(HOLDS)
    sensor(deferrable=deferrable).execute({})
    assert len(done) == 1


def test_blocking_it_looks_again(looks: Callable[..., list[Any]]) -> None:
    """Until the condition holds; a gateway that comes back within the patience does no harm."""
    done = looks(NOT_YET, AWAY, AWAY, NOT_YET, HOLDS)
    sensor().execute({})
    assert len(done) == 5


def test_a_gateway_that_stays_away_is_a_clear_failure(looks: Callable[..., list[Any]]) -> None:
    """After the patience, with growing pauses."""
    done = looks(AWAY)
    with pytest.raises(AirflowException, match="the gateway is away"):
        sensor(patience="20s").execute({})
    assert len(done) == 6


def test_time_out_and_soft_fail_are_airflows(looks: Callable[..., list[Any]]) -> None:
    """Too long waited is a failure, or with soft_fail a skip; deferred, Airflow turns the trigger's time-out into the
    same.
    """
    looks(NOT_YET)
    with pytest.raises(AirflowSensorTimeout):
        sensor(timeout=0).execute({})
    with pytest.raises(AirflowSkipException):
        sensor(timeout=0, soft_fail=True).execute({})
    failed = {"event": {"error": "no use", "final": False}}
    with pytest.raises(AirflowException, match="no use"):
        sensor(deferrable=True).resume_execution("execute_complete", failed, {})
    with pytest.raises(AirflowSkipException):
        sensor(deferrable=True, soft_fail=True).resume_execution("execute_complete", failed, {})


def test_what_can_never_come_fails_at_once(looks: Callable[..., list[Any]]) -> None:
    """Without a retry; so do settings that cannot be meant."""
    looks(HOPELESS)
    with pytest.raises(AirflowFailException, match="dropped: that cannot come any more"):
        sensor().poke({})
    with pytest.raises(AirflowFailException, match="no time zone"):
        sensors.LowWatermarkSensor(task_id="wait", past="2026-01-31").poke({})


@pytest.mark.parametrize("deferrable", [False, True])
def test_what_this_store_cannot_tell_is_not_waited_for(looks: Callable[..., list[Any]], deferrable: bool) -> None:
    """The times of an oracle that counts: refused at the first look, for good, and by a trigger that is there
    already.
    """
    done = looks(UsageError("a counter"))
    with pytest.raises(AirflowFailException, match="a counter"):
        sensor(deferrable=deferrable).execute({})
    assert len(done) == 1
    (event,) = asyncio.run(first(ConditionTrigger(_CONDITION), 2))
    assert event == {"error": "a counter", "final": True}
    with pytest.raises(AirflowException, match="a counter") as failed:
        sensor(deferrable=True).execute_complete({}, event)
    assert isinstance(failed.value, AirflowFailException)


def test_deferred_it_waits_in_the_triggerer(looks: Callable[..., list[Any]]) -> None:
    """With the sensor's interval and timeout; also where the gateway is away just then."""
    for first in (NOT_YET, AWAY):
        looks(first)
        waiting = sensor(deferrable=True, timeout=77, patience="3m")
        with pytest.raises(TaskDeferred) as deferred:
            waiting.execute({})
        assert waiting.patience == "3m"
        assert deferred.value.timeout.total_seconds() == 77
        path, kwargs = deferred.value.trigger.serialize()
        assert path == "lowtide_airflow.triggers.ConditionTrigger"
        assert json.loads(json.dumps(kwargs)) == kwargs
        assert ConditionTrigger(**kwargs).serialize() == (path, kwargs)
        assert kwargs["patience"] == "3m"
    assert waiting.execute_complete({}, {"met": True, "text": "it holds"}) is None
    with pytest.raises(AirflowException, match="no use") as retried:
        waiting.execute_complete({}, {"error": "no use", "final": False})
    assert not isinstance(retried.value, AirflowFailException)


async def first(trigger: ConditionTrigger | ConditionWatcher, number: int = 1) -> list[Any]:
    events = []
    async for event in trigger.run():
        events.append(event.payload)
        if len(events) == number:
            break
    return events


@pytest.mark.parametrize(
    ("script", "event"),
    [
        ((NOT_YET, AWAY, HOLDS), {"met": True, "text": "it holds"}),
        ((AWAY,), {"error": "the gateway is away", "final": False}),
        ((HOPELESS,), {"error": "dropped: that cannot come any more", "final": True}),
    ],
    ids=["holds", "away", "never"],
)
def test_the_trigger_fires_once(
    looks: Callable[..., list[Any]], script: tuple[Any, ...], event: dict[str, Any]
) -> None:
    """When the condition holds, or with what is wrong."""
    looks(*script)
    assert asyncio.run(first(ConditionTrigger(_CONDITION), 2)) == [event]


def test_a_look_does_not_block_the_triggerers_loop(
    monkeypatch: pytest.MonkeyPatch, looks: Callable[..., list[Any]]
) -> None:
    """While one look waits for the gateway, others go on: the looks of two triggers meet."""
    import threading

    looks(HOLDS)
    both = threading.Barrier(2, timeout=10)

    def check(condition: Any, config: Any) -> CheckResult:
        both.wait()
        return HOLDS

    monkeypatch.setattr(triggers, "check", check)

    async def two() -> list[Any]:
        return await asyncio.gather(*(first(ConditionTrigger(_CONDITION)) for _ in range(2)))

    assert len(asyncio.run(two())) == 2


class Kept:
    """The state store of an asset, as the triggerer gives it to a watcher."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        assert value is not None
        json.dumps(value)
        self.values[key] = value


def test_a_watchers_cursor_survives_a_restart(looks: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told is not told again by the watcher that comes after; what came meanwhile is."""
    monkeypatch.setattr("lowtide_airflow.triggers._HANDED_ON", 0.1)
    hour = 3_600_000
    condition = TransactionsSettled(every="1h")
    kept = Kept()

    def watcher() -> ConditionWatcher:
        made = ConditionWatcher(condition.to_json(), poll_interval=1)
        made.asset_state_store = kept  # type: ignore[assignment]
        return made

    async def interrupted(made: ConditionWatcher, number: int) -> list[Any]:
        """Events up to *number*, and then one look more, so that the cursor is kept as in a running triggerer."""
        events: list[Any] = []
        async for event in made.run():
            events.append(event.payload["level"])
            if len(events) > number:
                break
        return events

    looks(condition.judge(hour), condition.judge(2 * hour), condition.judge(2 * hour + 1), condition.judge(5 * hour))
    assert asyncio.run(interrupted(watcher(), 2)) == [hour, 2 * hour, 5 * hour]
    # The last was told and its cursor not kept: a triggerer that died there tells it again, and nothing before it.
    assert kept.values == {watcher().cursor_key: 2 * hour}
    looks(*(condition.judge(at) for at in (2 * hour + 1, 5 * hour, 5 * hour)), AWAY, condition.judge(6 * hour))
    assert asyncio.run(interrupted(watcher(), 1)) == [5 * hour, 6 * hour]


@pytest.mark.parametrize(
    ("condition", "said"),
    [(_CONDITION, "a counter"), ({"kind": "no such"}, "unknown condition 'no such'")],
    ids=["store", "condition"],
)
def test_a_watcher_ends_with_what_cannot_pass(
    looks: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    condition: dict[str, Any],
    said: str,
) -> None:
    """After what may pass was waited for: as an error in the log at once, and to Airflow five minutes later, which
    starts it anew right away.
    """
    pauses: list[float] = []

    async def slept(seconds: float) -> None:
        assert len(pauses) < 10, "it does not end"
        pauses.append(seconds)

    monkeypatch.setattr(triggers.asyncio, "sleep", slept)
    looks(AWAY, StoreError("no table yet"), UsageError("a counter"))
    with pytest.raises(UsageError, match=said):
        asyncio.run(first(ConditionWatcher(condition)))
    assert pauses == ([1.0, 2.0, 300.0] if condition is _CONDITION else [300.0])
    assert any("[error " in line and said in line for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("connection", "said"),
    [("hbase_default", "dropped: that cannot come any more"), ("elsewhere", "no connection 'elsewhere'")],
)
def test_a_watcher_says_that_nothing_will_come(
    looks: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch, connection: str, said: str
) -> None:
    """A condition that can never hold, and a connection that is not there: it neither looks on in silence nor is
    started anew each second.
    """
    pauses: list[float] = []

    async def slept(seconds: float) -> None:
        assert len(pauses) < 10, "it does not end"
        pauses.append(seconds)

    monkeypatch.setattr(triggers.asyncio, "sleep", slept)
    looks(NOT_YET, HOPELESS)
    with pytest.raises(UsageError, match=said):
        asyncio.run(first(ConditionWatcher(_CONDITION, 7, connection)))
    assert pauses == [7, 300.0][connection == "elsewhere" :]


def test_a_patience_that_is_none_is_refused(looks: Callable[..., list[Any]]) -> None:
    """When the file is imported; of a trigger that is there already, for good."""
    looks(HOLDS)
    with pytest.raises(UsageError, match=r"patience: .*'five'"):
        sensor(patience="five")
    (event,) = asyncio.run(first(ConditionTrigger(_CONDITION, patience="five"), 2))
    assert event["final"]
    assert "patience: " in event["error"]


def test_a_connection_that_is_not_there_fails_for_good(looks: Callable[..., list[Any]]) -> None:
    """No retry makes one."""
    looks(HOLDS)
    with pytest.raises(AirflowFailException, match="no connection 'elsewhere'"):
        sensor(hbase_conn_id="elsewhere").execute({})
    (event,) = asyncio.run(first(ConditionTrigger(_CONDITION, hbase_conn_id="elsewhere"), 2))
    assert event["final"]


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
def test_failing_softly_counts_from_the_first_look_on(
    looks: Callable[..., list[Any]], option: str, deferrable: bool
) -> None:
    """Deferred or not."""
    looks(HOPELESS)
    with pytest.raises(AirflowSkipException):
        sensor(deferrable=deferrable, **{option: True}).execute({})


@pytest.mark.parametrize("how", ["silent_fail", "never_fail"])
def test_a_gateway_that_is_away_at_the_first_look_is_left_to_the_triggerer(
    looks: Callable[..., list[Any]], how: str
) -> None:
    """Which has the patience; what it says in the end is Airflow's to take softly."""
    looks(AWAY)
    with pytest.raises(TaskDeferred):
        sensor(deferrable=True, **{how: True}).execute({})


def test_watchers_are_told_apart_by_their_settings() -> None:
    """Airflow runs equal ones once, and takes them for an asset."""
    one, same, other = (ConditionWatcher(CommitTableLarger(than=n).to_json()) for n in (5, 5, 6))
    assert ConditionWatcher.hash(*one.serialize()) == ConditionWatcher.hash(*same.serialize())
    assert ConditionWatcher.hash(*one.serialize()) != ConditionWatcher.hash(*other.serialize())
    assert one.cursor_key == same.cursor_key != other.cursor_key
    east, west = (ConditionWatcher(one.condition, hbase_conn_id=name) for name in ("east", "west"))
    assert len({one.cursor_key, east.cursor_key, west.cursor_key}) == 3, "what one store told is news of the other"
    named = ConditionWatcher(one.condition, hbase_conn_id="hbase_default")
    assert named.cursor_key == one.cursor_key == f"lowtide cursor of {json.dumps(one.condition, sort_keys=True)}"
    asset = Asset("large", watchers=[AssetWatcher(name="watch", trigger=one)])
    with DAG("event_driven", schedule=[asset]) as dag:
        pass
    DagSerialization.from_dict(DagSerialization.to_dict(dag))


def test_a_connection_lies_over_the_configuration() -> None:
    """Host, port and extra; what it leaves open stays as configured."""
    connection = Connection(
        conn_id="c",
        conn_type="hbase",
        host="gateway",
        port=19090,
        extra=json.dumps(
            {"transport": "framed", "timeout": "5s", "table_prefix": "bank_", "pool_size": 3, "protocol": ""}
        ),
    )
    found = merged(Config(), connection, "c")
    assert (found.hbase.thrift.host, found.hbase.thrift.port) == ("gateway", 19090)
    assert (found.hbase.thrift.transport, found.hbase.thrift.protocol) == ("framed", "binary")
    assert found.hbase.thrift.timeout.total_seconds() == 5
    assert found.hbase.thrift.login == "none"
    assert (found.ledger.prefix, found.ledger.pool, found.omid) == ("bank_", 3, Config().omid)


def test_a_connection_says_how_to_log_in() -> None:
    """By the names of the configuration, laid over it together."""
    login = {
        "transport": "https",
        "login": "kerberos",
        "principal": "lowtide@EXAMPLE.ORG",
        "keytab": "/etc/security/lowtide.keytab",
        "service": "HTTP/_HOST",
        "ca_file": "/etc/ssl/ours.pem",
        "do_as": "orders",
    }
    found = merged(Config(), Connection(conn_id="c", conn_type="hbase", extra=json.dumps(login)), "c").hbase.thrift
    assert {key: getattr(found, key) for key in login} == login


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"compat": "0.96"}, "connection c: unknown extra compat; known are transport"),
        ({"transport": "quick"}, "quick"),
        ({"service": "thrift/gw"}, "service: .*login: kerberos alone"),
        ({"transport": "framed", "login": "kerberos"}, "login: no gateway that is framed asks"),
    ],
)
def test_a_bad_connection_is_named(extra: dict[str, Any], said: str) -> None:
    """With the key and the value."""
    with pytest.raises(UsageError, match=said):
        merged(Config(), Connection(conn_id="c", conn_type="hbase", extra=json.dumps(extra)), "c")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_refused_connection_tells_no_secret_of_the_configuration_below_it() -> None:
    """It is laid over the whole of that."""
    config = Config.model_construct(
        **{**Config().__dict__, "spark": Config().spark.model_copy(update={"conf": {"spark.a.password": ["hunter2"]}})}
    )
    with pytest.raises(UsageError, match=r"spark\.conf\.spark\.a\.password: ") as refused:
        merged(config, Connection(conn_id="c", conn_type="hbase"), "c")
    assert "hunter2" not in str(refused.value)


def test_a_connection_names_its_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whose configuration then lies below it, in a task and in the triggerer; one that is not there is an error."""
    file = tmp_path / "east.yaml"
    file.write_text("hbase: {zookeeper_quorum: zk.east, thrift: {host: east, port: 19090}}\n")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", json.dumps({"east": str(file)}))
    about = {"conn_type": "hbase", "port": 1, "extra": {"store": "east"}}
    monkeypatch.setenv("AIRFLOW_CONN_HBASE_EAST", json.dumps(about))
    hook = HBaseHook("hbase_east")
    for found in (hook.config(), asyncio.run(hook.aconfig())):
        assert (found.hbase.thrift.host, found.hbase.thrift.port) == ("east", 1)
    monkeypatch.setenv("AIRFLOW_CONN_HBASE_EAST", json.dumps(about | {"extra": {"store": "west"}}))
    with pytest.raises(UsageError, match="no store 'west'"):
        hook.config()


def test_a_missing_connection_is_an_error_unless_it_is_the_default(looks: Callable[..., list[Any]]) -> None:
    """The default then means the configuration alone."""
    looks(HOLDS)
    assert HBaseHook().config() == load()
    assert asyncio.run(HBaseHook().aconfig()) == load()
    for ask in (HBaseHook("elsewhere").config, lambda: asyncio.run(HBaseHook("elsewhere").aconfig())):
        with pytest.raises(UsageError, match=r"no connection 'elsewhere'.*Make one of type hbase"):
            ask()


def test_a_connection_names_the_store_where_no_configuration_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a machine that is set up for a cluster too; without one nothing says which store is meant."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOWTIDE_CONFIG", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    monkeypatch.setenv("AIRFLOW_CONN_OF_PROD", '{"conn_type": "hbase", "host": "gateway.prod", "port": 9091}')
    monkeypatch.setenv("AIRFLOW_CONN_OPEN", '{"conn_type": "hbase"}')
    named = HBaseHook("of_prod")
    for found in (named.config(), asyncio.run(named.aconfig())):
        assert (found.hbase.thrift.host, found.hbase.thrift.port) == ("gateway.prod", 9091)
    for unnamed in (HBaseHook("open"), HBaseHook()):
        with pytest.raises(UnnamedStoreError):
            unnamed.config()


@pytest.fixture(scope="module")
def manager() -> ProvidersManager:
    return ProvidersManager()


def test_the_page_knows_the_connection_type(manager: ProvidersManager) -> None:
    """With its fields and labels, without importing the hook."""
    assert manager.hooks["hbase"].hook_class_name == "lowtide_airflow.hook.HBaseHook"  # type: ignore[union-attr]
    fields = {name for name in manager.connection_form_widgets if name.startswith("extra__hbase__")}
    login = ("login", "principal", "keytab", "ticket_cache", "service", "qop", "ca_file", "do_as")
    known = ("transport", "protocol", "timeout", *login, "store", "table_prefix", "pool_size")
    assert fields == {f"extra__hbase__{n}" for n in known}
    assert manager.field_behaviours["hbase"]["hidden_fields"] == ["schema", "login", "password"]
