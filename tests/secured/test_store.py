"""The secured store itself: who gets in, where it listens, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from secured_kit import of_kind

from lowtide.lab.stack import Stack, StackError, free_ports_config, load, probes, secured
from lowtide.store.gateway import connect

pytestmark = pytest.mark.needs("kerberos")


def test_every_part_runs(store: Stack, tmp_path: Path) -> None:
    """The key distribution centre is the first of them, and the oracle gives timestamps."""
    of_kind(store, "auth-conf", tmp_path)
    assert [part.name for part in store.status()] == ["kdc", "hbase", "thrift", "tso"]
    assert {part.state for part in store.status()} == {"running"}
    assert store.timestamp() < store.timestamp()


def test_everything_listens_on_the_loopback_interface_only(store: Stack) -> None:
    """No part can be reached from another machine, the key distribution centre neither."""
    listening = [
        each.laddr
        for part in store.status()
        for each in psutil.Process(part.pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN or each.type == 2  # a socket of UDP
    ]
    assert {address.port for address in listening} >= set(store.config.ports.values())
    assert {address.ip for address in listening} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_hbase_asks_for_a_login(store: Stack) -> None:
    """Its servers take nobody's word for who he is, as those of a store without logins do."""
    assert store.listening("hbase")
    assert not any(map(probes.server_answers, store.listening("hbase")))


def test_the_oracles_tables_are_its_own_work(store: Stack, tmp_path: Path) -> None:
    """It has logged in with rights that the master gave it, and made them."""
    there = of_kind(store, "auth-conf", tmp_path)
    with connect(there.settings()) as connection:
        assert {b"OMID_COMMIT_TABLE", b"OMID_TIMESTAMP_TABLE"} <= set(connection.tables())


def test_keys_are_this_users_alone(store: Stack) -> None:
    """Keytabs, the gateway's configuration and the key of its certificate."""
    folder = secured.folder(store.config)
    assert (folder / "keytabs").stat().st_mode & 0o77 == 0
    assert all(file.stat().st_mode & 0o77 == 0 for file in (folder / "keytabs").iterdir())
    assert (store.config.home / "conf" / "thrift").stat().st_mode & 0o77 == 0
    for file in (*folder.glob("*.p12"), *folder.glob("*.password")):
        assert file.stat().st_mode & 0o77 == 0


def test_a_store_stays_what_it_was_made_as(store: Stack) -> None:
    """With logins or without: its tables belong to users that the other kind does not know."""
    plain = free_ports_config(store.config.home)
    with pytest.raises(StackError, match="was made with logins; add --secured"):
        Stack(plain).up()
    assert load(store.config.home).secured


def test_it_starts_again_with_new_keys_and_old_data(store: Stack, tmp_path: Path) -> None:
    """Everything ends, nothing is left running or open, and what was written is there after the next start."""
    there = of_kind(store, "auth-conf", tmp_path)
    with connect(there.settings()) as connection:
        connection.create_table("kept", {"f": {}})
        connection.table("kept").put(b"r", {b"f:a": b"v"})
    processes = [part.pid for part in there.stack.status() if part.pid]
    old = Path(there.keytab("lowtide")).read_bytes()
    there.stack.down()
    assert {part.state for part in there.stack.status()} == {"stopped"}
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists() and os.readlink(f"/proc/{pid}/exe")]
    there.stack.up()
    assert Path(there.keytab("lowtide")).read_bytes() != old
    # Tickets of before, in this process's memory, are for keys that are gone: it fetches others by itself.
    with connect(there.settings(), attempts=1) as connection:
        assert connection.table("kept").row(b"r") == {b"f:a": b"v"}
        connection.delete_table("kept", disable=True)
