"""What an administrator sets wrong on a store that asks for logins: each is named in a sentence, with what to do."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from job_site import Site
from lowtide_spark.frames.audit_log import FOLDER
from secured_kit import of_kind

from lowtide.lab.stack import Stack, secured

_SERVERS = ("hbase.master.kerberos.principal", "hbase.regionserver.kerberos.principal")


@pytest.fixture(scope="module")
def site(store: Stack, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Where jobs are started. The gateway encrypts."""
    folder = tmp_path_factory.mktemp("misconfigured")
    return Site(of_kind(store, "auth-conf", folder), folder)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"hbase.client.keytab.file": "/nowhere/lowtide.keytab"}, "the keytab /nowhere/lowtide.keytab is not there"),
        ({"hbase.client.keytab.file": "alice's"}, "alice.keytab is not there for this user to read, or has no key of"),
        ({"hbase.client.keytab.principal": "lowtide@NOWHERE.TEST"}, "no login to HBase as lowtide@NOWHERE.TEST"),
        ({"hbase.client.keytab.principal": f"nobody@{secured.REALM}"}, f"has no key of nobody@{secured.REALM}"),
        ({"hbase.client.keytab.principal": None}, "nor hbase.client.keytab.file and .principal among hbase.properties"),
        (
            dict.fromkeys(_SERVERS, f"nobody/localhost@{secured.REALM}"),
            "no server of HBase's by the name in hbase.master.kerberos.principal",
        ),
        ({"hbase.rpc.protection": "authentication"}, "do not agree on hbase.rpc.protection"),
        ({"hbase.security.authentication": "simple"}, "set hbase.security.authentication: kerberos"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_a_setting_that_lets_nobody_in_is_named(site: Site, properties: dict[str, Any], words: str) -> None:
    """Within seconds, with the exit code of a job that could do nothing, and nothing of Java's."""
    file = site.configuration()
    content = yaml.safe_load(file.read_text())
    for name, value in properties.items():
        told = site.gateway.keytab("alice") if value == "alice's" else value
        content["hbase"]["properties"][name] = told
    content["hbase"]["properties"] = {k: v for k, v in content["hbase"]["properties"].items() if v is not None}
    file.write_text(yaml.safe_dump(content))
    for job in (("survey",), ("orphan_cleanup", "--execute")):
        done = site.run(*job, config=file)
        assert done.code != 0
        assert words in done.problems
        assert "Exception" not in done.problems, done.problems
    assert [folder.name for folder in site.sideline.glob("*")] in ([], [FOLDER]), "the audit log alone"


def test_a_java_without_krb5_conf_is_named(site: Site) -> None:
    """Where it looks, and the option that names the file."""
    file = site.configuration()
    content = yaml.safe_load(file.read_text())
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        content["spark"]["conf"][name] = "-Djava.security.krb5.conf=/nowhere/krb5.conf"
    file.write_text(yaml.safe_dump(content))
    done = site.run("survey", config=file)
    assert done.code != 0
    assert "Java knows no realm of Kerberos's: put krb5.conf where it looks" in done.problems
