"""The configuration file."""

from __future__ import annotations

import re
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lowtide import paths
from lowtide.config import CONFIG_VARIABLE, Config, Mode, Read, State, load
from lowtide.errors import UsageError
from lowtide.sources import site
from lowtide.tables.inventory import Kind

_CLIENT = "org.apache.hadoop.hbase.client"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a configuration, and none named in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in (CONFIG_VARIABLE, *site.VARIABLES):
        monkeypatch.delenv(name, raising=False)


def given(text: str, name: str = "given.yaml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_defaults_are_dry_and_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file nothing is executed, the grace is a week and full passes come weekly."""
    monkeypatch.setattr(paths, "store", lambda: Path("no store"))  # whatever there is in this checkout
    config = load()
    anchored = Config(state={"sideline": str(Path(".lowtide/sideline").resolve())})
    assert config == anchored
    assert config.table("any").mode is Mode.DRY_RUN
    assert config.table("any").kind is None
    assert config.grace == timedelta(days=7)
    assert config.table("any").full_pass_every == timedelta(days=7)
    assert load(given("")) == anchored
    assert load(str(given(""))) == anchored, "a program has a text"


def test_no_grace_is_said_twice() -> None:
    """With allow_no_grace beside it, which alone changes nothing; the ledger's grace is another, and has its own."""
    assert load(given("grace: 0s\nallow_no_grace: true")).grace == timedelta()
    assert load(given("allow_no_grace: true")).grace == timedelta(days=7)
    assert load(given("ledger: {grace: 0s, allow_short_grace: true}")).ledger.grace == timedelta()
    assert load(given("ledger: {grace: 3m}")).ledger.grace == timedelta(minutes=3)


def test_order_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path outranks the environment variable, which outranks ``lowtide.yaml`` in the current folder."""
    given("grace: 1h", "lowtide.yaml")
    assert load().grace == timedelta(hours=1)
    monkeypatch.setenv(CONFIG_VARIABLE, str(given("grace: 2h", "named.yaml")))
    assert load().grace == timedelta(hours=2)
    assert load(given("grace: 3h")).grace == timedelta(hours=3)


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("nosuch: 1", "nosuch", "unknown key"),
        ("omid: {comit_table: x}", "omid.comit_table", "unknown key"),
        ("defaults: {budget: {row: 1}}", "defaults.budget.row", "unknown key"),
        ("omid: {clock: moon}", "omid.clock", "'moon'"),
        ("hbase: {properties: {fs.defaultFS: x}}", "hbase.properties", "fs.defaultFS is none of HBase's"),
        ("grace: 10", "grace", "10"),
        ("grace: -1h", "grace", "'-1h'"),
        ("hbase: {thrift: {port: 0}}", "hbase.thrift.port", "0"),
        ("defaults: {budget: {share: 1.5}}", "defaults.budget.share", "1.5"),
        ("defaults: {budget: {share: 0}}", "defaults.budget.share", "0"),
        ("defaults: {mode: sometimes}", "defaults.mode", "'sometimes'"),
        ("tables: {accounts: {mode: sometimes}}", "tables.accounts.mode", "'sometimes'"),
        ("tables: {accounts: {modee: execute}}", "tables.accounts.modee", "unknown key"),
        ("tables: {accounts: {budget: {rows: none}}}", "tables.accounts.budget.rows", "'none'"),
        (
            "tables: {accounts: }",
            "tables.accounts",
            "nothing stands under it: take accounts out too, or write accounts: {}",
        ),
        ("hbase:\n#  znode: /x", "hbase", "nothing stands under it: take hbase out too, or write hbase: {}"),
        ("ledger:", "ledger", "write ledger: {}"),
        ("hbase: {thrift: }", "hbase.thrift", "write thrift: {}"),
        ("tables:", "tables", "write tables: {}"),
        ("hbase: {thrift: {timeout: 0s}}", "hbase.thrift.timeout", "longer than nothing"),
        ("omid: {oracle: ['[::1]:24758']}", "omid.oracle.0", "host:port is expected, such as tso1.example.org:24758"),
        ("omid: {oracle: [tso1]}", "omid.oracle.0", "found 'tso1'"),
        ("state: {sideline: ''}", "state.sideline", "a folder or a URL is expected"),
        ("state: {sideline: ~/side}", "state.sideline", "'~/side' begins with ~"),
        ("state: {sideline: 'hdfs:/x'}", "state.sideline", "write hdfs:///x, or with its host hdfs://HOST/x"),
        ("state: {sideline: 'file:/mnt/side'}", "state.sideline", "write file:///mnt/side"),
        ("state: {sideline: 'hdfs:'}", "state.sideline", "is no URL"),
        ("tables: {orders*: {history_mode: dry-run}}", "tables.orders*", "'orders*' cannot be a table of HBase's"),
        ("tables: {'a b': {}}", "tables.a b", "cannot be a table"),
        ("tables: {'a:b:c': {}}", "tables.a:b:c", "cannot be a table"),
        ("tables: {'-a': {}}", "tables.-a", "cannot be a table"),
        ("grace: 8d\nhbase: {}\ngrace: 9d", "grace", "stands in line 1 and again in line 3; only the last would count"),
        (
            "tables: {orders: {mode: dry-run}}\ndefaults: {mode: execute}\ntables: {legacy: {mode: dry-run}}",
            "tables",
            "line 1 and again in line 3",
        ),
        ("tables:\n  orders: {mode: execute}\n  'orders': {}", "tables.orders", "line 2 and again in line 3"),
        ("tables: {orders: {mode: dry-run, mode: execute}}", "tables.orders.mode", "line 1 and again in line 1"),
        ("omid: {foreign: [{a: 1, a: 2}]}", "omid.foreign.0.a", "line 1 and again in line 1"),
    ],
)
def test_bad_keys_and_values_are_named(text: str, place: str, value: str) -> None:
    """Every unknown key, bad value and key that stands twice is refused with file, place and value, a table's settings
    too.
    """
    with pytest.raises(UsageError) as caught:
        load(given(text))
    message = str(caught.value)
    assert message.startswith("given.yaml")
    assert f"  {place}: " in message
    assert value in message


def test_all_problems_are_listed_at_once() -> None:
    """Two mistakes are two lines, not two attempts."""
    with pytest.raises(
        UsageError, match=r"2 problem\(s\)(?s:.)*nosuch(?s:.)*grace|2 problem\(s\)(?s:.)*grace(?s:.)*nosuch"
    ):
        load(given("nosuch: 1\ngrace: soon"))


def test_names_that_hbase_takes_have_settings() -> None:
    """Of a namespace, with all that a name may have in it, in whatever script."""
    names = ["orders", "bank:orders", "A.b-c_1", "_x", "bücher", "खाता"]
    config = load(given("tables:\n" + "".join(f"  '{name}': {{mode: execute}}\n" for name in names)))
    assert all(config.table(name).mode is Mode.EXECUTE for name in names)


def test_merged_settings_are_no_repetition() -> None:
    """What a mapping takes over by ``<<`` it may say otherwise, also where that mapping took over something itself."""
    text = """
tables:
  a: &a {mode: execute, read: rpc}
  b: &b {<<: *a, mode: dry-run}
  c: {<<: [*b, *a], kind: plain}
defaults: &d {budget: {rows: 5}}
"""
    config = load(given(text))
    assert (config.table("b").mode, config.table("b").read) == (Mode.DRY_RUN, Read.RPC)
    assert (config.table("c").mode, config.table("c").kind) == (Mode.DRY_RUN, Kind.PLAIN)
    nested = "tables: {a: {budget: &b {<<: &x {rows: 5}, rows: 6}}}\ndefaults: {budget: {<<: *b, always: 7}}"
    assert load(given(nested)).table("a").budget.rows == 6
    assert load(given(nested)).table("z").budget.model_dump() == {"rows": 6, "share": 0.5, "always": 7}


def test_a_mapping_that_holds_itself_ends_in_a_sentence() -> None:
    """As YAML allows: no table is called so, and nothing runs for ever."""
    with pytest.raises(UsageError, match=r"given\.yaml"):
        load(given("tables: &t {orders: *t}"))


def test_a_configuration_is_in_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's encoding is; another is refused with the file and the first byte that shows it."""
    monkeypatch.setattr("io.text_encoding", lambda given, *_: given or "ascii")
    path = given("")
    path.write_bytes("# für uns\ntables: {bücher: {mode: execute}}\n".encode())
    assert load(path).table("bücher").mode is Mode.EXECUTE
    path.write_bytes("grace: 8d\n# für uns\n".encode("latin-1"))
    with pytest.raises(
        UsageError, match=r"^given\.yaml is not in UTF-8: byte 14 \(line 2\) is 0xfc; save it as UTF-8$"
    ):
        load(path)


@pytest.mark.parametrize(
    ("text", "named"), [("a: [", "not valid YAML"), ("- a", "found list"), ("just text", "found str")]
)
def test_files_of_another_shape_are_refused(text: str, named: str) -> None:
    """What is no YAML, or no mapping, is refused with the file's name."""
    with pytest.raises(UsageError, match=rf"given\.yaml .*{named}"):
        load(given(text))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("spark:\n  conf: {spark.hadoop.fs.s3a.secret.key: 'hunter2'", "line 2, column "),
        ("spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: *hunter2", "line 3, column 37"),
        ("spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: !hunter2", "line 3, column 37"),
        ("spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: !hunter2!x", "line 3, column 37"),
        ("spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: 'hunter2' 7", "line 3, column "),
        ("hbase: {properties: {hbase.rpc.tls.truststore.password: [hunter2]}}", "truststore.password: "),
        ("hbase: {properties: [hbase.rpc.tls.truststore.password: hunter2]}", "hbase.properties: "),
        ("hbase: {properties: [{name: hbase.rpc.tls.truststore.password, value: hunter2}]}", "hbase.properties: "),
        ("hbase: {properties: {fs.s3a.secret.key=hunter2: x}}", "fs.s3a.secret.key="),
        ("hbase: {thrift: 'http://u:hunter2@h:9090'}", "hbase.thrift: "),
        ("spark: {conf: 'spark.authenticate.secret=hunter2'}", "spark.conf: "),
        ("spark: {conf: {spark.hadoop.fs.azure.account.key.x: [hunter2]}}", "account.key.x: "),
        ("state: {sideline: 's3a:AKIA:hunter2@bucket/x'}", "state.sideline: "),
        ("spark: {conf: {spark.hadoop.fs.s3a.access.key: {x: hunter2}}}", "access.key: "),
    ],
)
def test_no_secret_is_told_of_a_file_that_is_refused(text: str, named: str) -> None:
    """Neither in what is said, nor in an error from which it came, which a log may show; where it stands is said."""
    with pytest.raises(UsageError) as refused:
        load(given(text))
    assert named in str(refused.value)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_missing_file_is_named() -> None:
    """A file that is named and not there is an error, never the defaults."""
    with pytest.raises(UsageError, match=r"cannot read the configuration absent\.yaml.*--config"):
        load(Path("absent.yaml"))


def test_tables_are_merged_over_the_defaults() -> None:
    """A table has its own settings, and the defaults' where it says nothing; other tables have the defaults."""
    config = load(given("defaults: {mode: execute, read: rpc}\ntables: {accounts: {mode: dry-run, kind: plain}}"))
    own, other = config.table("accounts"), config.table("other")
    assert (own.mode, own.read, own.kind) == (Mode.DRY_RUN, Read.RPC, Kind.PLAIN)
    assert (other.mode, other.read, other.kind) == (Mode.EXECUTE, Read.RPC, None)


def test_a_tables_budget_is_merged_over_the_defaults_budget() -> None:
    """A table that sets one limit keeps the others of ``defaults``: a tight default is not loosened by the way."""
    config = load(given("defaults: {budget: {share: 0.1, always: 3}}\ntables: {accounts: {budget: {rows: 5}}}"))
    budget = config.table("accounts").budget
    assert (budget.rows, budget.share, budget.always) == (5, 0.1, 3)


def test_client_properties() -> None:
    """The HBase client gets quorum, port and znode, and further properties over them."""
    config = load(
        given('hbase: {zookeeper_port: 2345, properties: {zookeeper.znode.parent: /other, hbase.rpc.timeout: "9"}}')
    )
    assert config.hbase.client_properties() == {
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": "2345",
        "zookeeper.znode.parent": "/other",
        "hbase.rpc.timeout": "9",
    }


@pytest.mark.parametrize(
    ("hbase", "addresses"),
    [
        ({}, ["127.0.0.1:2181"]),
        ({"zookeeper_quorum": "zk1, zk2:2182,", "zookeeper_port": 2191}, ["zk1:2191", "zk2:2182"]),
        ({"properties": {"hbase.zookeeper.quorum": "zk9"}}, ["zk9:2181"]),
        ({"properties": {"hbase.client.registry.impl": f"{_CLIENT}.ZKConnectionRegistry"}}, ["127.0.0.1:2181"]),
        ({"properties": {"hbase.client.registry.impl": f"{_CLIENT}.RpcConnectionRegistry"}}, []),
    ],
)
def test_where_zookeeper_is_looked_for(hbase: dict[str, Any], addresses: list[str]) -> None:
    """Where HBase's client would, each host with its port; nowhere where it asks the master instead."""
    assert Config.model_validate({"hbase": hbase}).hbase.zookeeper_addresses == addresses


def test_history_is_kept_a_week_and_removed_only_when_asked() -> None:
    """By default history is kept for 7 days, never less than an hour, and scheduled runs remove none of it."""
    table = load().table("any")
    assert (table.history_max_age, table.min_history_age) == (timedelta(days=7), timedelta(hours=1))
    assert table.history_mode is Mode.DRY_RUN


def test_history_ages_of_a_table() -> None:
    """A table may keep its history for ever, or for a quarter of an hour where the least age is as low."""
    tables = (
        "tables: {a: {history_max_age: forever}, b: {history_max_age: 15m, min_history_age: 15m}, c: {mode: execute}}"
    )
    config = load(given(tables))
    assert config.table("a").history_max_age == "forever"
    assert config.table("b").history_max_age == timedelta(minutes=15)
    assert config.table("c").history_mode is Mode.DRY_RUN


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("tables: {t: {history_max_age: -1h}}", "tables.t.history_max_age", "a duration such as"),
        ("tables: {t: {history_max_age: never}}", "tables.t.history_max_age", "a duration such as"),
        ("defaults: {history_max_age: 15m}", "defaults.history_max_age", "set min_history_age as low"),
        ("tables: {t: {min_history_age: 8d}}", "tables.t.history_max_age", "7d is shorter than min_history_age, 8d"),
    ],
)
def test_history_ages_that_cannot_be_meant(text: str, place: str, what: str) -> None:
    """A negative, unparsable or too short age is named with its place."""
    with pytest.raises(UsageError) as error:
        load(given(text))
    assert place in str(error.value)
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "tables: {orders: {history_max_age: 5 parsecs}}",
            "tables.orders.history_max_age: a duration such as 30s, 15m, 24h, 7d or 1d12h is expected, found '5 "
            "parsecs'; or forever, which removes nothing",
        ),
        (
            "tables: {orders: {history_max_age: 10m, mode: execute}}",
            "tables.orders.history_max_age: 10m is shorter than min_history_age, 1h: give it 1h or more, or set "
            "min_history_age as low, if no transaction lives as long",
        ),
        (
            "grace: 0s",
            "grace: 0s lets commit entries go at once, and a client that is suspended in its commit then rolls "
            "back what others have read; give it "
            "longer than a client may be suspended, such as 7d, or say allow_no_grace: true beside it",
        ),
        (
            "ledger: {grace: 179s}",
            "ledger.grace: 179s is shorter than 3m, and a client that has put its index entry and is about to claim "
            "its transaction would lose the entry: HBase's servers may be two minutes apart, and the claim takes up to "
            "one; give it 3m or more, or say allow_short_grace: true beside it, if no client works while a repair does",
        ),
        ("grace: soon", "grace: a duration such as 30s, 15m, 24h, 7d or 1d12h is expected, found 'soon'"),
        (
            "defaults: {hold_max_age: 0s}",
            "defaults.hold_max_age: a duration longer than nothing is expected, such as 1h or 7d, found 0s",
        ),
        (
            "tables: {orders: {hold_max_age: 0s}}",
            "tables.orders.hold_max_age: a duration longer than nothing is expected, such as 1h or 7d, found 0s",
        ),
        (
            "tables: {orders: {budget: {rows: 0}}}",
            "tables.orders.budget.rows: Input should be greater than 0 (found 0)",
        ),
    ],
)
def test_a_bad_value_is_told_once_and_as_people_write_it(text: str, line: str) -> None:
    """Key, value and remedy in one line, and nothing else of the settings."""
    with pytest.raises(UsageError) as error:
        load(given(text))
    assert str(error.value) == f"given.yaml has 1 problem(s):\n  {line}"


@pytest.mark.parametrize(
    ("sideline", "master", "refused"),
    [
        ("/var/sideline", "local[4]", False),
        ("/var/sideline", "local-cluster[2,1,1024]", False),
        ("/var/sideline", "localhost:7077", True),
        ("/var/sideline", "yarn", True),
        ("/var/sideline", "spark://host:7077", True),
        ("hdfs://ns/sideline", "yarn", False),
        ("file:///mnt/everywhere", "k8s://https://host:6443", False),
    ],
)
def test_a_sideline_that_executors_do_not_share_is_refused(sideline: str, master: str, refused: bool) -> None:
    """A folder of one machine, where executors are elsewhere: what each put there, nobody could put back."""
    state = State(sideline=sideline)
    if not refused:
        state.check_sideline(master)
        return
    with pytest.raises(UsageError, match=rf"state\.sideline is {sideline}.*{re.escape(master)}.*hdfs://"):
        state.check_sideline(master)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("state: {journal_keep: 6d}", "defaults.full_pass_every"),
        ("state: {journal_keep: 8d}\ntables: {t: {full_pass_every: 9d}}", "tables.t.full_pass_every"),
    ],
)
def test_full_passes_rarer_than_the_journal_lasts_are_refused(text: str, place: str) -> None:
    """Both settings are named, with the table that has one of its own."""
    with pytest.raises(UsageError) as error:
        load(given(text))
    assert str(error.value).startswith(f"given.yaml has 1 problem(s):\n  {place}: ")
    assert "longer than state.journal_keep" in str(error.value)


def test_full_passes_as_often_as_the_journal_lasts() -> None:
    """The very time will do, and a table may pass more often than others."""
    config = load(given("state: {journal_keep: 7d}\ntables: {t: {full_pass_every: 1d}}"))
    assert config.table("t").full_pass_every == timedelta(days=1)


def test_a_durability_is_accepted_by_name_only() -> None:
    """For one table, not for whatever comes."""
    config = load(given("tables: {t: {accept_durability: true}}"))
    assert (config.table("t").accept_durability, config.table("u").accept_durability) == (True, False)
    with pytest.raises(UsageError, match=r"defaults\.accept_durability: .*say it under tables"):
        load(given("defaults: {accept_durability: true}"))
