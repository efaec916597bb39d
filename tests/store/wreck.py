"""What a dead run left behind, looked at from outside: in the sideline, among HBase's snapshots, beside its root
folder.
"""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from lowtide_spark.frames import owner
from lowtide_spark.frames.audit_log import FOLDER
from lowtide_spark.frames.folders import safe
from lowtide_spark.frames.store import Store
from pyarrow import parquet

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient

Key = tuple[bytes, bytes, bytes, int]


def aside(folder: Path, run: str, table: str) -> set[Key]:
    """The keys of the cells of *table* that the run put aside, by its files alone, whatever list they have."""
    found: set[Key] = set()
    for file in (folder / safe(run) / safe(table)).glob("*.parquet"):
        for cell in parquet.read_table(file).to_pylist():
            found.add((cell["row"], cell["family"], cell["qualifier"] or b"", cell["timestamp"]))
    return found


def make_shared_folders(connector: Store) -> None:
    """The folders of the audit log, and the store's claim, as runs make them: the first has some effects more than
    those after it.
    """
    sideline = Path(connector.config.state.sideline)
    sideline.mkdir(exist_ok=True)
    folder = sideline
    for name in (FOLDER, f"{datetime.now(UTC):%Y-%m}"):
        folder = folder / name
        folder.mkdir()
        folder.chmod(0o1000 | stat.S_IMODE(sideline.stat().st_mode))
    request = SimpleNamespace(now=datetime.now(UTC))
    run: Any = SimpleNamespace(store=connector, config=connector.config, request=request)
    owner.claim(run)


def snapshots(omid: OmidClient, table: str) -> list[str]:
    """HBase snapshots of the table that runs made."""
    return [name for name in omid.snapshots() if name.startswith(f"lowtide-run-{table}-")]


def scratch(stack: Stack) -> Path:
    """Where runs that read HBase snapshots make their folders."""
    root = Path(urlsplit(stack.hbase_properties()["hbase.rootdir"]).path)
    return root.with_name(f"{root.name}-lowtide-scratch")


def folders(stack: Stack, table: str) -> list[str]:
    """Scratch folders of runs that read HBase snapshots of the table."""
    return [each.name for each in scratch(stack).glob(f"lowtide-run-{table}-*")]
