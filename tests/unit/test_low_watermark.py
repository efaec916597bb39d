"""When a run may say that it had read the low watermark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.frames.writing import Life
from lowtide_spark.run import oracle
from lowtide_spark.run.oracle import OracleChecks

from lowtide.config import Config
from lowtide.values.skew import MARGIN

BEGAN = datetime(2026, 1, 31, tzinfo=UTC)


def test_a_low_watermark_is_dated_no_earlier_than_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages of history go by these dates: of an earlier one, what began since the run did would be taken for older."""
    times = [BEGAN]

    def read(_: OracleChecks) -> int:
        times.append(BEGAN + MARGIN / 2)
        return 5000

    state = SimpleNamespace(
        exists=lambda: True,
        create=lambda: None,
        connection=None,
        check_low_watermark=lambda _: None,
        check_commit_table=lambda *_: None,
        record_low_watermark=lambda *_: None,
        generation=lambda: 0,
        server_time=lambda: times[-1],
    )
    monkeypatch.setattr(oracle, "allotted", lambda *_: None)
    monkeypatch.setattr(OracleChecks, "_check_oracle", lambda _: None)
    monkeypatch.setattr(OracleChecks, "_check_entries_kept", lambda _: None)
    monkeypatch.setattr(OracleChecks, "_commit_table_life", lambda _: Life("OMID_COMMIT_TABLE", 7))
    monkeypatch.setattr(OracleChecks, "_stored_low_watermark", read)
    store: Any = SimpleNamespace(state=lambda: state)
    options: Any = SimpleNamespace(execute=True, as_configured=False)
    request: Any = SimpleNamespace(run="r", now=BEGAN)
    summary: Any = SimpleNamespace(notes=[], low_watermark=0)
    run = OracleChecks(options, Config(), store, request, summary)
    assert run.read_low_watermark() == 5000
    assert run.read_at - BEGAN >= MARGIN / 2 > timedelta()
