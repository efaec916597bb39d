"""The workload's script, history and model, without a store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.lab.workload import history, script
from lowtide.lab.workload.model import Cell, Model, Transaction
from lowtide.lab.workload.script import CRASH_POINTS, Shape

ROW, FAMILY = b"row", b"f"
Q = (ROW, FAMILY, b"q")


def put(value: bytes, qualifier: bytes = b"q", checkpoint: int = 0) -> Cell:
    kind = "put" if value else "delete"
    return Cell("t", ROW, FAMILY, qualifier, checkpoint, kind, value)


def family_tombstone(checkpoint: int = 0) -> Cell:
    return Cell("t", ROW, FAMILY, b"", checkpoint, "delete_family", b"")


def done(start: int, commit: int | None, *cells: Cell, crash: int | None = None) -> Transaction:
    outcome = "abandoned" if commit is None else "committed"
    return Transaction(start, commit, outcome, crash, None, f"id{start}", "", cells)


def shown(read_timestamp: int, *transactions: Transaction) -> dict[tuple[bytes, bytes, bytes], bytes]:
    return Model(transactions).shown_at("t", read_timestamp)


# --- the model --------------------------------------------------------------------------------------------------------


def test_a_read_point_shows_what_was_committed_before_it() -> None:
    """A commit is seen by read timestamps above it, and not at it."""
    first, second = done(50, 100, put(b"one")), done(150, 200, put(b"two"))
    assert shown(100, first, second) == {}
    assert shown(101, first, second) == {Q: b"one"}
    assert shown(200, first, second) == {Q: b"one"}
    assert shown(201, first, second) == {Q: b"two"}


def test_what_never_committed_is_never_shown() -> None:
    """Abandoned cells hide nothing and are not seen, whatever their timestamp."""
    assert shown(10_000, done(50, 100, put(b"one")), done(150, None, put(b"lost"))) == {Q: b"one"}


def test_the_highest_cell_timestamp_wins_and_not_the_latest_commit() -> None:
    """Of two conflict-free writers 50 -> 160 and 100 -> 150 the reader shows the one that started later."""
    early, late = done(50, 160, put(b"early start")), done(100, 150, put(b"late start"))
    assert shown(155, early, late) == {Q: b"late start"}
    assert shown(161, early, late) == {Q: b"late start"}


def test_a_later_checkpoint_wins_within_a_transaction() -> None:
    """Checkpoints have one commit timestamp and rising cell timestamps."""
    both = done(50, 100, put(b"first"), put(b"second", checkpoint=1))
    assert shown(101, both) == {Q: b"second"}


def test_two_writes_at_one_timestamp_are_one_cell() -> None:
    """The later write replaces the earlier one of the same checkpoint."""
    assert shown(101, done(50, 100, put(b"first"), put(b"second"))) == {Q: b"second"}


def test_an_empty_value_deletes_the_column_and_a_later_put_brings_it_back() -> None:
    """A cell tombstone hides older versions of its column alone."""
    history_ = (
        done(50, 100, put(b"one"), put(b"other", b"p")),
        done(150, 200, put(b"")),
        done(250, 300, put(b"two")),
    )
    assert shown(201, *history_) == {(ROW, FAMILY, b"p"): b"other"}
    assert shown(301, *history_) == {(ROW, FAMILY, b"p"): b"other", Q: b"two"}


def test_a_family_tombstone_hides_cells_up_to_its_commit_timestamp() -> None:
    """A cell written between start and commit of a family delete is hidden too; one above the commit is not."""
    tombstone = done(150, 300, family_tombstone())
    before, within, after = done(50, 100, put(b"1")), done(200, 250, put(b"2")), done(350, 400, put(b"3"))
    assert shown(260, before, within, tombstone) == {Q: b"2"}
    assert shown(301, before, within, tombstone) == {}
    assert shown(401, before, within, tombstone, after) == {Q: b"3"}


def test_a_family_tombstone_hides_its_own_transactions_later_puts() -> None:
    """Omid compares the tombstone's commit with the cell's start: a put after a checkpoint is hidden as well."""
    assert shown(101, done(50, 100, family_tombstone(), put(b"again", checkpoint=1))) == {}


def test_the_family_tombstone_of_the_highest_cell_timestamp_counts() -> None:
    """An older tombstone that committed later is not looked at (conflict-free writers)."""
    older, newer = done(50, 400, family_tombstone()), done(100, 150, family_tombstone())
    cell = done(200, 250, put(b"kept"))
    assert shown(401, older, newer, cell) == {Q: b"kept"}


def test_a_family_tombstone_belongs_to_one_row_and_family() -> None:
    """Cells of other families and rows stay."""
    elsewhere = Cell("t", ROW, b"g", b"q", 0, "put", b"other")
    assert shown(301, done(50, 100, put(b"1"), elsewhere), done(150, 300, family_tombstone())) == {
        (ROW, b"g", b"q"): b"other"
    }


def test_torn_columns_are_those_of_a_committed_transaction_at_crash_point_10() -> None:
    """Only a transaction whose proof was lost may be shown wrongly before it is healed."""
    model = Model([done(50, 100, put(b"1"), crash=10), done(150, 200, put(b"2", b"p"), crash=4)])
    assert model.torn_columns("t") == {Q}
    assert model.torn_columns("other") == set()


def test_read_timestamps_lie_just_above_commits() -> None:
    """As many as asked for, different, sorted, the last commit among them, none above the limit."""
    model = Model([done(start, start + 50, put(b"v")) for start in range(50, 10_000, 100)])
    chosen = model.read_timestamps(20)
    assert len(set(chosen)) == 20
    assert chosen == sorted(chosen)
    assert chosen[-1] == 10_001
    assert {timestamp % 50 for timestamp in chosen} == {1}
    assert max(model.read_timestamps(20, upto=5_000)) <= 5_000


raw_bytes = st.binary(min_size=0, max_size=6)
cells = st.builds(
    Cell,
    st.sampled_from(["t", "u"]),
    raw_bytes,
    raw_bytes,
    raw_bytes,
    st.integers(0, 49),
    st.sampled_from(["put", "delete"]),
    raw_bytes,
)
histories = st.lists(
    st.builds(
        Transaction,
        st.integers(1, 2**61).map(lambda n: n * 50 % 2**62),
        st.none() | st.integers(1, 2**62),
        st.sampled_from(["committed", "abandoned"]),
        st.none() | st.sampled_from(CRASH_POINTS),
        st.none() | st.just("kill"),
        st.text(max_size=5),
        st.text(max_size=5),
        st.lists(cells, max_size=3).map(tuple),
    ),
    max_size=5,
)


@given(transactions=histories)
def test_a_saved_history_is_read_back(
    transactions: list[Transaction], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any bytes and any 63-bit timestamps survive the file."""
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    model = Model(transactions)
    model.save(path)
    assert Model.load(path).transactions == model.transactions


# --- the script -------------------------------------------------------------------------------------------------------


@given(seed=st.integers())
def test_the_same_seed_makes_the_same_script(seed: int) -> None:
    """A script depends on its shape and seed alone, and its values name the seed."""
    shape = Shape()
    once, again = script.generate(shape, seed, 30), script.generate(shape, seed, 30)
    assert once == again
    assert once != script.generate(shape, seed + 1, 30)
    assert len(list(script.scripts(once))) >= 30
    json.dumps(once)


@given(seed=st.integers(0, 1000))
def test_no_column_is_written_twice_between_two_checkpoints(seed: int) -> None:
    """Such writes would have one timestamp, and which of them stays is HBase's affair."""
    for each in script.scripts(script.generate(Shape(rows=2, qualifiers=("q",), checkpoints=0.2), seed, 40)):
        taken: set[tuple[Any, ...]] = set()
        for step in each["steps"]:
            if step["do"] == "checkpoint":
                taken.clear()
            elif step["do"] in ("put", "delete"):
                column = (step["table"], step["row"], step["family"], step["qualifier"])
                assert column not in taken
                taken.add(column)


@given(seed=st.integers(0, 1000))
def test_a_groups_order_takes_each_transaction_to_its_end(seed: int) -> None:
    """Each transaction has as many turns as steps, and ends in its last."""
    for group in script.generate(Shape(), seed, 60):
        for number, each in enumerate(group["transactions"]):
            assert group["order"].count(number) == len(each["steps"])
            endings = [step["do"] for step in each["steps"] if step["do"] in ("commit", "rollback", "abandon")]
            assert endings == [each["steps"][-1]["do"]]


def test_every_crash_point_occurs_and_is_possible() -> None:
    """A script of 300 has all crash points; those that need two plain cells have them."""
    crashing = [each for each in script.scripts(script.generate(Shape(), 7, 300)) if "crash" in each]
    assert {each["crash"] for each in crashing} == set(CRASH_POINTS)
    for each in crashing:
        if each["crash"] in (5, 10):
            assert len(each["steps"]) >= 3
            assert {step["do"] for step in each["steps"]} == {"put", "commit"}


def test_a_refused_transaction_has_a_rival_that_commits_first() -> None:
    """For crash point 2 the rival writes the same first column and commits before the other asks to."""
    (group,) = script.crash_each(Shape(crash_points=(2,)), 3)
    doomed, rival = group["transactions"]
    assert [doomed["steps"][0][name] for name in ("table", "row", "family", "qualifier")] == [
        rival["steps"][0][name] for name in ("table", "row", "family", "qualifier")
    ]
    assert group["order"][-1] == 0
    assert group["order"][-2] == 1


def test_rows_sort_as_their_numbers_and_are_split_evenly() -> None:
    """The split keys are rows, in order, inside the key space."""
    shape = Shape(rows=120)
    keys = [shape.row(number) for number in range(shape.rows)]
    assert keys == sorted(keys)
    assert shape.splits(4) == ["r030", "r060", "r090"]
    assert shape.splits(1) == []


# --- the history ------------------------------------------------------------------------------------------------------


def log(path: Path, events: Iterable[dict[str, Any]], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + tail)
    return path


def test_transactions_without_an_end_are_settled_by_their_fate(tmp_path: Path) -> None:
    """A killed client's transactions get the commit timestamp that the store proves, or none."""
    row = ["t", "row", "f", "q", 0, "put", "v"]
    path = log(
        tmp_path / "log",
        [
            {"event": "begin", "start": 50, "id": "a"},
            {"event": "cells", "start": 50, "cells": [row]},
            {"event": "begin", "start": 100, "id": "b"},
            {"event": "cells", "start": 100, "cells": [row]},
            {"event": "die", "start": 100, "crash": 4},
            {"event": "begin", "start": 150, "id": "c"},
        ],
        tail='{"event": "cells", "sta',
    )
    asked = []

    def fate(start: int, cells: list[Cell]) -> int | None:
        asked.append((start, len(cells)))
        return {50: None, 100: 400}[start]

    first, second, third = history.read(path, fate, ended="kill")
    assert asked == [(50, 1), (100, 1)]
    assert (first.commit, first.outcome, first.ended, first.crash) == (None, "abandoned", "kill", None)
    assert (second.commit, second.outcome, second.ended, second.crash) == (400, "committed", "halt", 4)
    assert (third.outcome, third.ended, third.cells) == ("abandoned", "kill", ())


def test_transactions_with_an_end_are_believed(tmp_path: Path) -> None:
    """What the client was told is final; the store is not asked."""
    path = log(
        tmp_path / "log",
        [
            {"event": "begin", "start": 50, "id": "a"},
            {"event": "cells", "start": 50, "cells": [["t", "r", "f", "q", 1, "put", "\u00ff"]]},
            {"event": "end", "start": 50, "outcome": "committed", "commit": 200, "crash": 6},
            {"event": "begin", "start": 100, "id": "b"},
            {"event": "end", "start": 100, "outcome": "conflict", "commit": None, "reason": "a conflict"},
        ],
    )

    def fate(start: int, _cells: list[Cell]) -> int | None:
        raise AssertionError(f"asked for {start}")

    first, second = history.read(path, fate, ended="kill")
    assert (first.commit, first.crash, first.ended) == (200, 6, None)
    assert first.cells == (Cell("t", b"r", b"f", b"q", 1, "put", b"\xff"),)
    assert (second.outcome, second.commit, second.reason) == ("conflict", None, "a conflict")


def test_a_client_that_never_began_has_no_history(tmp_path: Path) -> None:
    """A client killed before its first transaction left no log."""
    assert history.read(tmp_path / "none", lambda _start, _cells: None, ended="kill") == []
