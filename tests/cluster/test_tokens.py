"""What executors on a secured YARN are let in by: tokens that are not there, that end, and that are renewed."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from secured_site import CLOSED, HBASE_SECONDS, ME, USER, SecuredSite
from yarn_kit import Ended, tell

from lowtide.lab.stack import secured
from lowtide.lab.workload import OmidClient

pytestmark = pytest.mark.needs("kerberos")

#: Rows of a table with an orphan in each; at so many cells in a second a run outlives HBase's tokens.
ROWS, SLOW = 30, 1
SMALL_RUN = {"spark.executor.instances": "1"}
_numbers = itertools.count(1)
_NOBODY = f"nobody@{secured.REALM}"


@dataclass(frozen=True)
class Orphans:
    """A table of the test's own."""

    omid: OmidClient
    table: str

    def gone(self) -> int:
        """How many cells have a delete marker."""
        return sum(cell.kind == "delete" for cell in self.omid.raw(self.table))


@pytest.fixture
def orphans(secured_site: SecuredSite, secured_omid: OmidClient) -> Iterator[Orphans]:
    """A table in two regions with cells that a cleanup would delete."""
    table = f"tokens{next(_numbers)}"
    secured_omid.create(table, ("a",), splits=("row5",))
    for number in range(ROWS):
        row = b"row%d-%d" % (number % 10, number)
        secured_omid.put(table, row, b"a", b"q", secured_omid.begin(), b"never committed")
    secured_omid.advance_watermark()
    secured_site.grant(USER, secured_omid.tables())
    yield Orphans(secured_omid, table)
    secured_omid.drop(table)


def problem(ended: Ended) -> str:
    """The one sentence that a refused run has: in its summary or, where Spark was not started, on the terminal."""
    assert ended.code in (1, 2), ended.output
    said = ended.problems[0] if ended.problems else ended.output.strip().splitlines()[-1]
    tell(said)
    # Who was shut out in the middle cannot keep his summary either.
    assert [p for p in ended.problems[1:] if "the summary is not in the state table" not in p] == []
    assert "\n" not in said
    assert "unexpected" not in said
    return said


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        (
            {"spark.security.credentials.hbase.enabled": "false"},
            "executors have no token for HBase, which asks for logins by Kerberos: "
            "spark.security.credentials.hbase.enabled=false",
        ),
        (
            {"spark.security.credentials.hadoopfs.enabled": "false"},
            "executors have no token for state.sideline, hdfs://",
        ),
        ({"spark.yarn.queue": "nosuch"}, "to unknown queue: nosuch. spark.yarn.queue in spark.conf names its queue"),
        ({"spark.yarn.queue": CLOSED}, f"{USER} does not have permission to submit"),
        ({"spark.kerberos.keytab": "/nowhere/my.keytab"}, "the keytab /nowhere/my.keytab is not there for this user"),
        ({"spark.kerberos.principal": _NOBODY}, f"has no key of {_NOBODY}, but of {ME}"),
        ({"spark.kerberos.principal": None}, "and no spark.kerberos.principal. Give both"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_lets_nobody_in_is_named(
    secured_site: SecuredSite, orphans: Orphans, conf: dict[str, str | None], words: str
) -> None:
    """In one sentence with what to do; and no cell is changed."""
    before = orphans.omid.raw(orphans.table)
    config = secured_site.configuration({**SMALL_RUN, **conf})
    refused = secured_site.run("orphan_cleanup", "--config", str(config), "--full", "--execute")
    assert words in problem(refused)
    assert orphans.omid.raw(orphans.table) == before


@pytest.mark.parametrize("seconds", [None, 10], ids=["no ticket", "one that has expired"])
def test_a_driver_without_a_ticket_is_told_so(
    secured_site: SecuredSite, orphans: Orphans, tmp_path: Path, seconds: int | None
) -> None:
    """At once, with the cache that was looked into, where YARN's client would ask for many minutes; and no cell is
    changed.
    """
    before = orphans.omid.raw(orphans.table)
    config, cache = secured_site.configuration(keytab=None), str(tmp_path / "none")
    if seconds:
        with secured_site.ticket(seconds) as cache:
            time.sleep(seconds + 1)
    began = time.monotonic()
    refused = secured_site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", KRB5CCNAME=cache)
    assert f"no valid ticket in the ticket cache {cache} (KRB5CCNAME), or it has expired" in problem(refused)
    assert time.monotonic() - began < 300
    assert orphans.omid.raw(orphans.table) == before


def slow_run(site: SecuredSite, orphans: Orphans, keytab: str | None, **environment: str) -> tuple[Ended, float]:
    """A cleanup that takes longer than HBase's tokens are good, whose connections to HBase are closed whenever they are
    not used for a second: each that is opened anew shows a token. And how long it took.
    """
    often = {"hbase.ipc.client.connection.minIdleTimeBeforeClose": "1000", "hbase.client.retries.number": "3"}
    config = site.configuration(
        SMALL_RUN, keytab=keytab, hbase={"properties": often}, defaults={"rate": {"reads": SLOW, "writes": SLOW}}
    )
    asked = ("--config", str(config), "--full", "--execute", "--table", orphans.table)
    began = time.monotonic()
    return site.run("orphan_cleanup", *asked, **environment), time.monotonic() - began


def test_a_keytab_outlives_the_tokens(secured_site: SecuredSite, orphans: Orphans) -> None:
    """Spark's driver logs in with it and fetches others before they end, and executors go on by these."""
    done, seconds = slow_run(secured_site, orphans, USER)
    assert done.code == 0, done.output
    assert seconds > HBASE_SECONDS + 30, "nothing had to be renewed"
    assert (done.totals["deleted"], orphans.gone()) == (ROWS, ROWS)
    application = secured_site.applications("lowtide orphan_cleanup")[-1]
    (log,) = secured_site.containers(application["id"])
    assert log.read_text("utf-8", "replace").count("Updating delegation tokens for current user") > 2


def test_a_ticket_that_is_renewed_outlives_the_tokens(secured_site: SecuredSite, orphans: Orphans) -> None:
    """Somebody puts another into the cache before the first ends, as ``kinit`` does from time to time: the driver
    fetches tokens by that one, and executors go on.
    """
    with secured_site.ticket(75) as cache, secured_site.ticket(3600) as later:
        renewal = threading.Timer(45, os.replace, (later, cache))
        renewal.start()
        done, seconds = slow_run(secured_site, orphans, None, KRB5CCNAME=cache)
        renewal.cancel()
    assert done.code == 0, done.output
    assert seconds > HBASE_SECONDS + 30, "nothing had to be renewed"
    assert (done.totals["deleted"], orphans.gone()) == (ROWS, ROWS)


def test_a_ticket_that_ends_ends_the_run(secured_site: SecuredSite, orphans: Orphans) -> None:
    """One that nobody renews: the run goes on until its tokens end, and then is red, with a sentence that says why and
    what to do. What it did until then stands, and nothing else is changed: another run does the rest.
    """
    with secured_site.ticket(75) as cache:  # good when tokens are fetched first, and not when they are to be renewed
        ended, _ = slow_run(secured_site, orphans, None, KRB5CCNAME=cache)
    gone = orphans.gone()
    tell(f"{gone} of {ROWS} cells were gone")
    assert "the login, or a token that was fetched with it, has ended" in problem(ended)
    config = secured_site.configuration(SMALL_RUN)
    done = secured_site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", "--table", orphans.table)
    assert (done.code, done.totals["deleted"]) == (0, ROWS - gone), done.output
    assert orphans.gone() == ROWS
