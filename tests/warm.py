"""One store and one Spark driver that outlive a test process, for whoever runs many small ones (``tools/break-rules``).

The fixtures of ``tests/store`` and ``tests/spark`` attach to what the environment names, and then neither start nor
stop it::

    LOWTIDE_TEST_STORE=folder/of/the/store LOWTIDE_TEST_DRIVER=port:secret python -m pytest tests/store/...

``python -m tests.warm FOLDER [OPTION...]`` is such a driver: it prints its port and secret, and ends when its standard
input does.
"""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lowtide.config import Config
from lowtide.lab.stack import Stack, StackConfig, free_ports_config, load
from lowtide.lab.workload import OmidClient
from lowtide.run.pins import pinned
from lowtide.run.submit import job_conf
from tests.prove import PROVE

ROOT = Path(__file__).resolve().parents[1]
#: Into how many parts a session of the tests shuffles.
PARTS = "2" if PROVE else "1"
#: Names the line of HBase's releases that the tests' store is of, where that is not the newest.
HBASE = "LOWTIDE_TEST_HBASE"
STORE, CLIENT, DRIVER = "LOWTIDE_TEST_STORE", "LOWTIDE_TEST_CLIENT", "LOWTIDE_TEST_DRIVER"


def store_config(home: Path) -> StackConfig:
    """The tests' store: free ports, and an incremental oracle whose low watermark moves quickly."""
    # The gateway closes idle connections after a minute; a test holds one while jobs run.
    # A file of a megabyte counts as large, as one of 128 MB does elsewhere: minor compactions leave it out where newer
    # ones are small.
    extra = {"hbase.thrift.server.socket.read.timeout": "900000", "hbase.hstore.compaction.min.size": "1000000"}
    hbase = os.environ.get(HBASE, StackConfig.hbase)
    return free_ports_config(home, timestamps="incremental", conflict_map_size=64, extra_hbase=extra, hbase=hbase)


def running_store() -> Stack | None:
    """The store that the environment names, which runs; None where it names none."""
    return Stack(load(Path(os.environ[STORE]))) if STORE in os.environ else None


def running_client(store: Stack) -> OmidClient | None:
    """The client that the environment names, at the store; None where it names none."""
    return _SharedClient(store, int(os.environ[CLIENT])) if CLIENT in os.environ else None


class _SharedClient(OmidClient):
    """A client that another process has started and ends."""

    def __init__(self, store: Stack, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        stream: Any = self._socket.makefile("rw", encoding="utf-8")
        process: Any = SimpleNamespace(stdin=stream, stdout=stream, wait=lambda: "no answer")
        self._process, self._log = process, store.logs / "client.log"
        self._conflict_map_size = store.conflict_map_size

    def close(self) -> None:
        """Leave it to the next."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def spark_settings(scratch: Path) -> dict[str, str]:
    """The settings of a session on the store."""
    return {
        **job_conf(Config()),
        **pinned(pyspark.__version__),
        "spark.driver.memory": "1g",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # A tiny table's plan in more parts would cost more tasks, and find nothing else: its regions are read apart all
        # the same.
        "spark.sql.shuffle.partitions": PARTS,
        "spark.default.parallelism": PARTS,
        # Tables here are tiny: compiling each of hundreds of plans would cost most of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        # So little room as Java gives it otherwise is full after some fifty runs: from then on it throws away what it
        # has compiled, and compiles it again, with half of its time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    }


def new_session(settings: Mapping[str, str], master: str = "local[2]") -> SparkSession:
    """A session in a driver of its own."""
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def collect_garbage(session: SparkSession | None) -> None:
    """In Python and in Java, and time for what hangs on it: the driver lets go of what a read held when nothing refers
    to the read any more.
    """
    assert session is not None
    for _ in range(3):
        gc.collect()
        session._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        time.sleep(0.3)


def running_session(settings: Mapping[str, str]) -> SparkSession | None:
    """A session of its own in the driver that the environment names; None where it names none.

    Of *settings* it has those of queries; the others are the driver's.
    """
    if DRIVER not in os.environ:
        return None
    port, _, secret = os.environ[DRIVER].partition(":")
    # Read by the next call alone: a program that a test starts would take them for its own.
    os.environ |= {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}
    gateway = launch_gateway()
    del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    spark = gateway.jvm.org.apache.spark
    jsc = spark.api.java.JavaSparkContext.fromSparkContext(spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=jsc, conf=SparkConf(_jvm=gateway.jvm, _jconf=jsc.getConf()))
    shared = SparkSession(context)
    session = SparkSession(context, shared._jsparkSession.newSession())
    SparkSession._instantiatedSession = session
    gateway.jvm.SparkSession.setActiveSession(session._jsparkSession)
    for name, value in settings.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


#: Of a driver that works for many minutes: what it runs often is worth compiling well.
LONG_LIVED = ("-XX:TieredStopAtLevel=4", "-XX:+UseParallelGC")


class Driver:
    """A driver in a process of its own, with the connector as it is built, until it is closed or this process ends.

    *options* are those of its virtual machine.

    Raises:
        RuntimeError: it does not start.
    """

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        errors = folder / "errors"
        with errors.open("w") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(folder), *options],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, _, address = line.strip().partition(" ")
            if name == "driver":
                self.environment = {DRIVER: address}
                return
        msg = f"the Spark driver did not start:\n{errors.read_text()[-2000:]}"
        raise RuntimeError(msg)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()


def main() -> None:
    """Be a driver until the standard input ends."""
    settings = spark_settings(Path(sys.argv[1])) | {"spark.driver.memory": "2g"}  # for several sessions
    settings["spark.driver.extraJavaOptions"] += "".join(f" {option}" for option in sys.argv[2:])
    session = new_session(settings)
    session.sparkContext.setLogLevel("ERROR")
    parameters = session.sparkContext._gateway.gateway_parameters
    print(f"driver {parameters.port}:{parameters.auth_token}", flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
