"""What the jobs' view of the store makes of odd answers; the store itself is in tests/store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from lowtide_spark.frames.remembered import Remembered
from lowtide_spark.frames.store import Life, Store
from py4j.java_gateway import JavaMember

from lowtide.config import Config
from lowtide.errors import StoreError


@pytest.fixture
def asked() -> list[tuple[Any, ...]]:
    """What was asked of HBase's master, in order."""
    return []


@pytest.fixture
def store(asked: list[tuple[Any, ...]]) -> Store:
    """A store whose master notes what it is asked for, and does it."""

    class Admin:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            return lambda _, *about: asked.append((name, *about)) or "a scratch folder"

    class Map(dict[str, str]):
        put = dict.__setitem__

    jvm = SimpleNamespace(
        lowtide=SimpleNamespace(connector=SimpleNamespace(Admin=Admin())),
        java=SimpleNamespace(util=SimpleNamespace(HashMap=Map)),
    )
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2), _jvm=jvm)
    return Store(spark, Config())


def listing(*edges: tuple[bytes, bytes]) -> Any:
    return [
        SimpleNamespace(
            region=f"r{n}", start=start.hex(), stop=stop.hex(), created=n, store_bytes=None, compacted=None, stated=None
        )
        for n, (start, stop) in enumerate(edges)
    ]


@pytest.mark.parametrize(
    "edges",
    [
        [],
        [(b"", b"m")],
        [(b"m", b"")],
        [(b"", b"f"), (b"m", b"")],
        [(b"", b"m"), (b"f", b"")],
        [(b"", b""), (b"m", b"")],
    ],
    ids=["none", "no end", "no beginning", "a gap", "an overlap", "one within another"],
)
def test_regions_that_do_not_cover_the_table_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, edges: list[tuple[bytes, bytes]]
) -> None:
    """What lies in the gap would be neither cleaned nor hold the bound."""
    monkeypatch.setattr(store, "_listed", lambda *_, **__: listing(*edges))
    with pytest.raises(StoreError, match="regions of orders do not cover it from end to end"):
        store.regions("orders")


def test_regions_come_in_the_order_of_their_keys(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the master lists them."""
    monkeypatch.setattr(store, "_listed", lambda *_, **__: listing((b"m", b""), (b"", b"m")))
    assert [region.keys.start for region in store.regions("orders")] == [b"", b"m"]


def test_a_runs_snapshot_goes_whatever_happens(store: Store, asked: list[tuple[Any, ...]]) -> None:
    """With its scratch folder: an HBase snapshot that stays keeps the files of what was removed since."""
    with pytest.raises(ValueError, match="in the middle"), store.snapshot("orders", "run", sweep=False) as source:
        raise ValueError("in the middle")
    assert ("createSnapshot", "orders", source.snapshot) in asked
    assert ("dropSnapshot", source.snapshot) in asked
    assert asked[-1] == ("dropScratchDir", "a scratch folder")


def test_a_table_that_came_back_is_not_the_one_that_was_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state in HBase is of another time; what was planned is done to the other only."""
    monkeypatch.setattr(
        store, "_admin", lambda: SimpleNamespace(stated=lambda _, table: {"orders": 70, "users": 71}[table])
    )
    store.check_life(Life("orders", 70))
    with pytest.raises(StoreError, match=r"users was restored, made anew, or disabled and enabled .* Restore it again"):
        store.check_life(Life("users", 70), "Restore it again")


@pytest.mark.parametrize("broken", [False, True])
def test_a_write_that_broke_off_is_unfinished(store: Store, monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    """Executors that the driver lost may go on with it, and who removes must not say that it has ended."""
    monkeypatch.setattr(store, "check_consent", lambda _: [])
    monkeypatch.setattr(store, "_admin", lambda: SimpleNamespace(takeReport=lambda _: "[]"))
    mutations = Mock()
    save = mutations.write.format.return_value.options.return_value.mode.return_value.save
    save.side_effect = RuntimeError("the stage was cancelled") if broken else None
    with suppress(RuntimeError):
        store.write(mutations, "orders")
    save.assert_called_once_with()
    assert store.unfinished == ({"orders"} if broken else set())


def test_a_name_of_the_jvms_is_looked_up_once() -> None:
    """A class, and a method of it; what is neither is looked up each time."""
    looked: list[str] = []
    client = SimpleNamespace(gateway_property=SimpleNamespace(pool=None), converters=[])

    class Admin:
        def __getattr__(self, name: str) -> Any:
            looked.append(name)
            return JavaMember(name, None, "z:lowtide.connector.Admin", client) if name == "stated" else name

    names = Remembered(Admin())
    assert names.stated is names.stated
    assert (names.VERSION, names.VERSION) == ("VERSION", "VERSION")
    assert looked == ["stated", "VERSION", "VERSION"]
