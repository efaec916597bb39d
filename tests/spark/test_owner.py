"""Whose a folder of sidelines is: the store's that acted there first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.frames import owner
from lowtide_spark.frames.owner import FOLDER, check, check_remembered, claim
from pyspark.sql import SparkSession

from lowtide.errors import StoreError, UsageError
from lowtide.run.summary import myself
from tests.spark.folder_kit import Runs, Summaries

Store = Callable[..., Any]


@pytest.fixture
def store(runs: Runs, spark: SparkSession, summaries: Summaries) -> Store:
    """A run in a store, by HBase's id and the name of its state table."""

    def run(cluster: str, table: str = "LOWTIDE_STATE") -> Any:
        made = runs("one")
        state = SimpleNamespace(sideline=made.config.state.sideline, table=table)
        state.sideline_keep = made.config.state.sideline_keep
        told = SimpleNamespace(spark=spark, cluster=lambda: SimpleNamespace(id=cluster), state=lambda: summaries)
        return SimpleNamespace(request=made.request, store=told, config=SimpleNamespace(state=state))

    return run


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_who_acts_first_owns_it(store: Store, tmp_path: Path) -> None:
    """Every other store is refused by name, with the way out, whether it acts or looks, and nothing there changes. An
    owner whose claim somebody removed is nobody's store any more.
    """
    (tmp_path / "one" / "orders").mkdir(parents=True)  # of before there were claims
    assert not check(store("a-1"))
    assert not (tmp_path / FOLDER).exists()
    claim(store("a-1"))
    claim(store("a-1"))
    assert check(store("a-1"))
    before = files_in(tmp_path)
    for other in (store("b-2"), store("a-1", "ns:STATE")):
        for refused in (claim, check):
            with pytest.raises(UsageError, match="belongs to another store, with the records LOWTIDE_STATE in") as told:
                refused(other)
            assert "HBase a-1" in str(told.value)
            assert "state.sideline of its own" in told.value.remedy
            assert told.value.remedy.endswith(f"{FOLDER}/a-1~LOWTIDE_STATE")
    assert files_in(tmp_path) == before
    (tmp_path / FOLDER / "a-1~LOWTIDE_STATE").unlink()
    claim(store("a-1", "ns:STATE"))
    with pytest.raises(UsageError, match=r"with the records ns:STATE in HBase a-1; this one has LOWTIDE_STATE in"):
        claim(store("a-1"))


def test_a_sideline_that_has_lost_everything_is_not_taken_for_a_new_one(
    store: Store, summaries: Summaries, tmp_path: Path
) -> None:
    """As a share that is not mounted: the summaries say that runs put cells there, and nothing is left of them. Whoever
    acts is told what is missing, and how to go on without it. What a run put elsewhere, or another machine on its own
    disk, or what is older than sidelines are kept, is not missed; nor anything where one folder is there.
    """
    here = myself().rpartition("@")[2]
    summaries.add("elsewhere", {"orders": 3}, folder="/another/elsewhere", by={"host": here})
    summaries.add("other", {"orders": 3}, folder=f"{tmp_path}/other", by={"host": "worker-2"})
    summaries.add("old", {"orders": 3}, folder=f"{tmp_path}/old", by={"host": here}, started=1)
    check_remembered(store("a-1"))
    by_url = store("a-1")
    by_url.config.state.sideline = f"file://{tmp_path}"
    summaries.add("url", {"orders": 3}, folder=f"file://{tmp_path}/url", by={"host": "worker-2"})
    with pytest.raises(StoreError, match="has lost what was put there: run url removed 3"):
        check_remembered(by_url)  # it is every machine's
    summaries.add("mine", {"orders": 3, "users": 1}, folder=f"{tmp_path}/mine", by={"host": here})
    assert check(store("a-1")) is False, "who only looks is told by other means"
    with pytest.raises(StoreError, match="has lost what was put there: run mine removed 3 cells of orders") as told:
        claim(store("a-1"))
    assert files_in(tmp_path) == []
    (tmp_path / "mine").mkdir()
    check_remembered(store("a-1"))
    (tmp_path / "mine").rmdir()
    word = Path(told.value.remedy.split()[-4].removeprefix("file:"))
    assert word == tmp_path / FOLDER / "a-1~LOWTIDE_STATE"
    word.parent.mkdir()
    word.touch()
    claim(store("a-1"))
    assert check(store("a-1"))


def test_of_two_that_come_at_once_none_is_beside_the_other(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looked before the other was there looks again, and takes its own claim away."""
    put = owner._put

    def late(files: Any, path: Any) -> None:
        monkeypatch.setattr(owner, "_put", put)
        claim(store("b-2"))
        put(files, path)

    monkeypatch.setattr(owner, "_put", late)
    with pytest.raises(UsageError, match="HBase b-2"):
        claim(store("a-1"))
    claim(store("b-2"))
    assert [name for name in files_in(tmp_path / FOLDER) if not name.startswith(".")] == ["b-2~LOWTIDE_STATE"]


def test_two_jobs_of_one_store_come_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is refused."""
    put = owner._put

    def late(files: Any, path: Any) -> None:
        put(files, path)
        put(files, path)

    monkeypatch.setattr(owner, "_put", late)
    claim(store("a-1"))
    assert check(store("a-1"))


def test_whose_it_is_has_to_be_told(store: Store, tmp_path: Path) -> None:
    """A folder that takes no claim, and an HBase that does not tell its id: nothing is done then."""
    with pytest.raises(StoreError, match="does not tell the id of its cluster"):
        claim(store(""))
    tmp_path.joinpath(FOLDER).write_text("a file where the folder ought to be")
    with pytest.raises(StoreError, match=r"cannot be made this store's: .*; nothing was done"):
        claim(store("a-1"))
