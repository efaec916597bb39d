"""Whose keys a keytab has, and what is said of one that is of no use."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.run import keytabs, submit


def entry(principal: str) -> bytes:
    """As MIT's Kerberos writes it: the name's parts behind the realm, a type, a time, a version and a key."""
    name, _, realm = principal.partition("@")
    texts = [realm, *name.split("/")]
    body = struct.pack(">H", len(texts) - 1) + b"".join(struct.pack(">H", len(t)) + t.encode() for t in texts)
    body += struct.pack(">IIB", 1, 0, 1) + struct.pack(">HH", 17, 16) + bytes(16)
    return struct.pack(">i", len(body)) + body


HOLE = struct.pack(">i", -12) + bytes(12)


@pytest.fixture
def keytab(tmp_path: Path) -> str:
    """Of two principals, with an entry between them that was removed."""
    file = tmp_path / "keytab"
    file.write_bytes(b"\x05\x02" + entry("lowtide@EXAMPLE.ORG") + HOLE + entry("hbase/a.example.org@EXAMPLE.ORG"))
    return str(file)


@pytest.mark.parametrize("principal", ["lowtide@EXAMPLE.ORG", "lowtide", "hbase/a.example.org@EXAMPLE.ORG"])
def test_whose_key_is_there_may_go_on(keytab: str, principal: str) -> None:
    """By the whole name, or without the realm, which is then the default one."""
    keytabs.check(keytab, principal, "they")


@pytest.mark.parametrize("principal", ["nobody@EXAMPLE.ORG", "lowtide@ELSEWHERE.ORG", "hbase", ""])
def test_whose_key_is_not_there_is_told_whose_are(keytab: str, principal: str) -> None:
    """And which settings name both."""
    with pytest.raises(UsageError) as refused:
        keytabs.check(keytab, principal, "these settings")
    told = str(refused.value)
    assert f"{keytab} has no key of {principal}, but of hbase/a.example.org@EXAMPLE.ORG, lowtide@EXAMPLE.ORG" in told
    assert "these settings name both" in told


def test_what_is_none_is_named(tmp_path: Path) -> None:
    """Nothing there, a folder, another kind of file, one that was cut."""
    other = tmp_path / "other"
    other.write_text("a line")
    for file, words in ((tmp_path / "none", "is not there for this user to read"), (tmp_path, "not there for this")):
        with pytest.raises(UsageError, match=words):
            keytabs.check(str(file), "lowtide", "they")
    with pytest.raises(UsageError, match="is no keytab"):
        keytabs.check(str(other), "lowtide", "they")
    other.write_bytes(b"\x05\x02" + entry("lowtide@EXAMPLE.ORG")[:12])
    with pytest.raises(UsageError, match="is no keytab"):
        keytabs.check(str(other), "lowtide", "they")


def test_a_run_is_refused_before_spark_starts(keytab: str) -> None:
    """Whether the keytab is Spark's own, or HBase's client's: by the command of the run."""
    properties = {
        "hbase.security.authentication": "kerberos",
        "hbase.client.keytab.file": keytab,
        "hbase.client.keytab.principal": "nobody@EXAMPLE.ORG",
    }
    spark = {"master": "yarn", "connector_class_path": ["c.jar"]}
    wrong = Config.model_validate({"hbase": {"properties": properties}, "spark": spark})
    with pytest.raises(UsageError, match=r"no key of nobody@EXAMPLE.ORG.*hbase.client.keytab.file"):
        submit.command(wrong, "survey", [])
    own = {"spark.kerberos.keytab": f"file://{keytab}", "spark.kerberos.principal": "nobody@EXAMPLE.ORG"}
    with pytest.raises(UsageError, match=r"spark.kerberos.keytab and spark.kerberos.principal"):
        submit.command(Config.model_validate({"spark": {**spark, "conf": own}}), "survey", [])
