"""The jobs as tests run them in their own process, and the configuration that they run with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lowtide_spark.asking.sidelines import look
from lowtide_spark.asking.why import why
from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.cleaning.pruning import prune
from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.history.collection import collect_history
from lowtide_spark.ledger.balances import balances
from lowtide_spark.ledger.repair import repair
from lowtide_spark.survey import survey
from lowtide_spark.undo.replay import replay
from lowtide_spark.undo.restore import restore
from lowtide_spark.verification.verify import verify

from lowtide.lab.stack import Stack
from lowtide.run import installation

JOBS = {
    "orphan_cleanup": clean,
    "watermark_collection": collect,
    "commit_table_pruning": prune,
    "history_gc": collect_history,
    "sideline_restore": restore,
    "journal_replay": replay,
    "transaction_repair": repair,
    "balances": balances,
    "survey": survey,
    "verify": verify,
    "sideline": look,
    "why": why,
}


@dataclass(frozen=True)
class Outcome:
    """A job's exit code and summary."""

    code: int
    summary: dict[str, Any]

    def table(self, name: str) -> dict[str, Any]:
        """The report of one table."""
        return next(t for t in self.summary["tables"] if t["table"] == name)

    @property
    def totals(self) -> dict[str, Any]:
        """Counts over all tables."""
        return self.summary["totals"]

    @property
    def problems(self) -> str:
        """All problems, as one text."""
        return "\n".join([*self.summary["problems"], *(p for t in self.summary["tables"] for p in t["problems"])])


#: Lowtide's own tables of tests that keep records apart: on one store they are other installations to each other.
APART = ["LOWTIDE_*", "CHAOS_*", "CHECKED_*", "CROSSED_*"]


def settings_for(stack: Stack, folder: Path, **sections: Any) -> dict[str, Any]:
    """A configuration's content for *stack*; *sections* are merged over it."""
    content: dict[str, Any] = {
        "hbase": {
            "zookeeper_quorum": "127.0.0.1",
            "zookeeper_port": stack.config.zookeeper_port,
            "thrift": {"port": stack.config.thrift_port, "timeout": "20s"},
            "properties": {
                "hbase.client.retries.number": "4",
                "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"],
            },
        },
        "omid": {"oracle": [f"127.0.0.1:{stack.config.tso_port}"], "foreign": APART},
        "state": {"sideline": str(folder / "sideline")},
        "defaults": {"budget": {"share": 1.0}},
    }
    for name, section in sections.items():
        content[name] = {**content[name], **section} if isinstance(content.get(name), dict) else section
    return content


def own_spark(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have Spark's programs started from a folder of the test's own: a cluster of executors on one machine keeps their
    files in Spark's.
    """
    home = installation.find({}).home
    assert home
    own = folder / "spark"
    own.mkdir()
    for part in home.iterdir():
        (own / part.name).symlink_to(part)
    for name, value in {"SPARK_HOME": str(own), "SPARK_LOCAL_IP": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
