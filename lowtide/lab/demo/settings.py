"""What a demo is made of, where it lives, and what it needs of the machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from lowtide.config import Config
from lowtide.errors import LowtideError
from lowtide.lab.airflow import AirflowConfig, LocalAirflow
from lowtide.lab.stack import Stack, StackConfig, embedded_classpath
from lowtide.lab.stack.config import LOOPBACK, port_is_free
from lowtide.lab.stack.config import load as load_store
from lowtide.lab.stack.machine import check_disk, check_java
from lowtide.paths import data
from lowtide.paths import store as default_store
from lowtide.run.submit import class_path

#: Says that a folder is a demo's, which the next demo may empty.
_MARKER = "this-is-a-lowtide-demo"


class DemoError(LowtideError):
    """The demo cannot go on; the message names the remedy."""


@dataclass(frozen=True)
class DemoSettings:
    """A demo: its folder, its ports, and how much happens in it.

    *transactions* are spread evenly over *days* past days. *snapshots* read points are compared with the
    model at the end. *hbase* is the line of releases of HBase's servers.
    """

    home: Path = data() / "demo"
    zookeeper_port: int = 2181
    thrift_port: int = 9090
    tso_port: int = 24758
    airflow_port: int = 8080
    seed: int = 7
    days: int = 7
    transactions: int = 1400
    snapshots: int = 24
    hbase: Literal["2.5", "2.6"] = "2.6"

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).absolute())

    @property
    def ports(self) -> dict[str, int]:
        """Each port by the option that changes it."""
        return {
            "--zookeeper-port": self.zookeeper_port,
            "--thrift-port": self.thrift_port,
            "--tso-port": self.tso_port,
            "--airflow-port": self.airflow_port,
        }

    @property
    def config_file(self) -> Path:
        """Lowtide's configuration for the demo's store."""
        return self.home / "lowtide.yaml"

    @property
    def page(self) -> Path:
        """The report."""
        return self.home / "report.html"

    @property
    def numbers(self) -> Path:
        """What the report is made of, as JSON."""
        return self.home / "report.json"

    @property
    def history(self) -> Path:
        """What the clients did, for the model."""
        return self.home / "history.jsonl"

    @property
    def end_command(self) -> str:
        """The command that ends what the demo leaves running."""
        elsewhere = "" if self.home == DemoSettings.home else f" --home {self.home}"
        return f".venv/bin/lowtide demo --down{elsewhere}"

    @staticmethod
    def shown(path: Path) -> str:
        """*path* as one types it in the checkout."""
        around = data().parent
        return str(path.relative_to(around)) if path.is_relative_to(around) else str(path)

    def stack(self) -> Stack:
        """The embedded store, with an oracle that counts: its timestamps mean what the recorded samples say."""
        return Stack(
            StackConfig(
                home=self.home / "store",
                zookeeper_port=self.zookeeper_port,
                thrift_port=self.thrift_port,
                tso_port=self.tso_port,
                timestamps="incremental",
                hbase=self.hbase,
            )
        )

    def airflow(self) -> LocalAirflow:
        """The local Airflow; a task that fails is tried again soon."""
        return LocalAirflow(
            AirflowConfig(
                home=self.home / "airflow",
                port=self.airflow_port,
                lowtide_config=self.config_file,
                settings={"lowtide": {"retries": "1", "retry_delay": "5"}},
            )
        )

    def write_config(self, stack: Stack) -> None:
        """Write the configuration: scheduled runs act, and pruning does not wait (it would for a day)."""
        content = {
            "hbase": {
                "zookeeper_quorum": LOOPBACK,
                "zookeeper_port": self.zookeeper_port,
                "thrift": {"port": self.thrift_port},
                "properties": {"hbase.rootdir": stack.hbase_properties()["hbase.rootdir"]},
            },
            "omid": {"oracle": [f"{LOOPBACK}:{self.tso_port}"]},
            # A URL: else each run notes that it lies on this worker, and this machine has no other.
            "state": {"sideline": f"file://{(self.home / 'sideline').absolute()}"},
            # A job here lives for some seconds: it is over before the second compiler's work would pay.
            "spark": {"conf": {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}},
            "defaults": {"mode": "execute"},
            "grace": "0s",
            "allow_no_grace": True,
            "ledger": {"grace": "1s", "allow_short_grace": True},  # its clients are killed before a repair
        }
        self.config_file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")


def end(settings: DemoSettings, tell: Callable[[str], None]) -> None:
    """End what an earlier demo left running, by the process ids that it recorded. Data stay."""
    settings.airflow().down(tell)
    settings.stack().down(tell)


def start_afresh(settings: DemoSettings, tell: Callable[[str], None]) -> None:
    """End what an earlier demo left running and remove its data; then check the machine.

    Raises:
        DemoError: the folder is not a demo's, or the machine lacks something; the message lists all of it.
    """
    home = settings.home
    marker = home / _MARKER
    if home.exists() and any(home.iterdir()) and not marker.exists():
        msg = f"{home} holds something else than an earlier demo; name another folder with --home"
        raise DemoError(msg)
    if marker.exists():
        settings.airflow().down(tell)
        stack = settings.stack()
        for part in reversed(stack.status()):
            if part.pid is not None and part.state != "killed":
                tell(f"ending {part.name} of an earlier demo")
                stack.kill(part.name)  # its data go in a moment: no need for it to write them down first
    found = missing(settings)
    if found:
        raise DemoError("\n  - ".join([f"the demo cannot start; {len(found)} thing(s) to put right:", *found]))
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.write_text("The next `lowtide demo` removes this folder.\n", "utf-8")


def missing(settings: DemoSettings) -> list[str]:
    """All that the machine lacks, each with its remedy."""
    found = []
    checks: list[Callable[[], object]] = [
        check_java,
        embedded_classpath,
        lambda: class_path(Config()),
        lambda: check_disk(settings.home),
    ]
    for check in checks:
        try:
            check()
        except LowtideError as error:
            found.append(str(error))
    taken = {option: port for option, port in settings.ports.items() if not port_is_free(port)}
    ours = _running_store_ports() if taken else set()
    for option, port in taken.items():
        holder = "`lowtide stack`: run `lowtide stack down`" if port in ours else "another program: end it"
        found.append(f"port {port} is held by {holder}, or give another one with {option}")
    return found


def _running_store_ports() -> set[int]:
    home = default_store()
    if not home.exists():
        return set()
    store = Stack(load_store(home))
    return {store.config.ports[part.name] for part in store.status() if part.state == "running"}
