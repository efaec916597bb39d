"""What executors are let in by where HBase and HDFS ask for logins: tokens, which Spark's driver fetches for them.

Spark does it by settings of its own, which say once more what the configuration says of HBase and of the sideline. So
they are made of it, and of Hadoop's ``core-site.xml``. What somebody sets himself wins.

On one machine there are no executors apart from the driver, and a standalone master passes no tokens on: nothing is
made for those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lowtide.config import SECURITY
from lowtide.errors import UsageError
from lowtide.sources import site

if TYPE_CHECKING:
    from lowtide.config import Config

#: Of HBase's client: a login by a file, in each JVM that has it.
KEYTAB, PRINCIPAL = "hbase.client.keytab.file", "hbase.client.keytab.principal"
NAMES = f"{KEYTAB} and {PRINCIPAL}"
#: Spark's own login, which it renews tokens with.
SPARK_KEYTAB, SPARK_PRINCIPAL = "spark.kerberos.keytab", "spark.kerberos.principal"
#: Whether Spark fetches tokens of HBase; of the file systems.
HBASE_TOKENS, FILE_TOKENS = "spark.security.credentials.hbase.enabled", "spark.security.credentials.hadoopfs.enabled"
RENEWAL = "spark.kerberos.renewal.credentials"
FILE_SYSTEMS = "spark.kerberos.access.hadoopFileSystems"
_HADOOP = "spark.hadoop."
#: File systems that give tokens to whom has logged in by Kerberos.
_GIVING = re.compile(r"(hdfs|webhdfs|swebhdfs|viewfs|o3fs|ofs)://[^/]+")
#: A ticket cache that is no file, such as ``KCM:`` and ``KEYRING:persistent:1000``.
_OTHER_CACHE = re.compile(r"(?!FILE:)[A-Za-z0-9]+:")
_MASTERS = ("yarn", "k8s://")
#: By what a task is let in to HBase.
_LETS_IN = {"HBASE_AUTH_TOKEN", "Kerberos"}


def asked(config: Config, master: str) -> bool:
    """Whether executors of *master* are let in to HBase by tokens."""
    return master.startswith(_MASTERS) and config.hbase.client_properties().get(SECURITY) == "kerberos"


def needs_login(config: Config, master: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the driver needs a login by Kerberos for executors of *master*: HBase asks for one, or YARN does, or a
    file system that the run goes to, by the ``core-site.xml`` that Spark finds, whatever HBase does.
    """
    folder = environ.get("HADOOP_CONF_DIR") or config.hbase.conf_dir
    goes_there = _GIVING.match(config.state.sideline) is not None or FILE_SYSTEMS in config.spark.conf
    wanted = master.startswith("yarn") or (master.startswith(_MASTERS) and goes_there)
    return asked(config, master) or (wanted and bool(folder) and site.asks_for_logins(Path(str(folder))))


def submitted(config: Config, master: str) -> dict[str, str]:
    """What ``spark-submit`` is told: who logs in, and whose tokens are fetched besides HBase's. No secrets: paths and
    names.

    Raises:
        UsageError: of Spark's own login, half is given.
    """
    conf = config.spark.conf
    if not needs_login(config, master):
        return {}
    found: dict[str, str] = {}
    if (SPARK_KEYTAB in conf) != (SPARK_PRINCIPAL in conf):
        there, lacks = sorted((SPARK_KEYTAB, SPARK_PRINCIPAL), key=lambda name: name not in conf)
        raise UsageError(
            f"spark.conf has {there}={conf[there]} and no {lacks}", "Give both, or none for a ticket cache"
        )
    if SPARK_KEYTAB not in conf:
        properties = config.hbase.client_properties()
        if KEYTAB in properties and PRINCIPAL in properties:
            found |= {SPARK_KEYTAB: properties[KEYTAB], SPARK_PRINCIPAL: properties[PRINCIPAL]}
        else:
            # Or tokens would be fetched once, and a run end with them, though something renews the cache.
            found[RENEWAL] = "ccache"
    systems = [text for text in conf.get(FILE_SYSTEMS, "").split(",") if text]
    if (sideline := _GIVING.match(config.state.sideline)) and sideline[0] not in systems:
        found[FILE_SYSTEMS] = ",".join([*systems, sideline[0]])
    return {name: value for name, value in found.items() if name not in conf or name == FILE_SYSTEMS}


def in_driver(config: Config, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """What Spark is told in the driver, which is on no command line: where HBase is, and how it is spoken to. *conf*
    is what the driver has.

    Not the keytab of HBase's client, who would log in with it for all of this JVM.
    """
    if not asked(config, master):
        return {}
    known = {_HADOOP + name: value for name, value in config.hbase.client_properties().items()}
    return {n: v for n, v in known.items() if n not in conf and n not in (_HADOOP + KEYTAB, _HADOOP + PRINCIPAL)}


class Login(Protocol):
    """How a driver's JVM is logged in: the connector's class of that name."""

    def ticket(self) -> str: ...
    def security(self) -> bool: ...


def stranger(login: Login, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Why the driver has no login by Kerberos to fetch tokens with, and what to do; None: it has one."""
    if not login.security():
        fact = "HBase asks for logins by Kerberos, and Hadoop in this driver knows nothing of it"
        remedy = "Have a core-site.xml that says hadoop.security.authentication: kerberos where HADOOP_CONF_DIR leads"
        return fact, remedy
    if login.ticket():
        return None
    cache = environ.get("KRB5CCNAME")
    where = f"the ticket cache {cache} (KRB5CCNAME)" if cache else "the ticket cache (KRB5CCNAME is not set)"
    fact = (
        f"this driver has no login by Kerberos: there is no valid ticket in {where}, or it has expired, and no keytab"
    )
    remedy = f"Run kinit, have something renew the cache, or set {SPARK_KEYTAB} and {SPARK_PRINCIPAL} in spark.conf"
    if not cache or _OTHER_CACHE.match(cache):
        remedy += (
            ". Where klist shows a ticket: Java reads caches that are files alone; kinit -c FILE:/PATH, and set "
            "KRB5CCNAME to it"
        )
    return fact, remedy


def lacking(held: Iterable[str], config: Config, master: str, conf: Mapping[str, str]) -> tuple[str, str]:
    """Why executors are not let in to HBase, and what to do about it; empty where they are, or HBase asks for nothing.

    Args:
        held: what the user of a task has, of each executor that was asked: kinds of tokens, with commas between.
        config: which HBase, and by which keytab.
        master: where they are.
        conf: what Spark runs with.
    """
    properties = config.hbase.client_properties()
    if properties.get(SECURITY) != "kerberos":
        return "", ""
    off = [name for name in (HBASE_TOKENS, FILE_TOKENS) if conf.get(name, "true").strip().lower() != "true"]
    if not (KEYTAB in properties and PRINCIPAL in properties) and not all(
        _LETS_IN & set(kinds.split(",")) for kinds in held
    ):
        fact = "executors have no token for HBase, which asks for logins by Kerberos"
        if not master.startswith(_MASTERS):
            keytab = f"Have {NAMES} among hbase.properties, and the file on every node"
            return f"{fact}: {master} is a master that passes none on", keytab
        if HBASE_TOKENS in off:
            return f"{fact}: {HBASE_TOKENS}={conf[HBASE_TOKENS]} has Spark fetch none", "Take that off spark.conf"
        remedy = (
            "The driver's log has the reason (HBaseDelegationTokenProvider): HBase's servers need the coprocessor "
            "org.apache.hadoop.hbase.security.token.TokenProvider, and the driver a ticket of its own, or a keytab"
        )
        return f"{fact}: Spark's driver was given none by HBase", remedy
    if FILE_TOKENS in off and asked(config, master) and _GIVING.match(config.state.sideline):
        fact = f"executors have no token for state.sideline, {config.state.sideline}, and HBase's would not be renewed"
        return f"{fact}: {FILE_TOKENS}={conf[FILE_TOKENS]} has Spark fetch none", "Take that off spark.conf"
    return "", ""
