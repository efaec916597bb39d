"""What executors are let in by where HBase and HDFS ask for logins: tokens, which Spark's driver fetches for them.

Spark does it by settings of its own, which say once more what the configuration says of HBase and of the sideline. So
they are made of it. What somebody sets himself wins. Pure.

On one machine there are no executors apart from the driver, and a standalone master passes no tokens on: nothing is
made for those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowtide.errors import UsageError

if TYPE_CHECKING:
    from lowtide.config import Config

#: Of HBase's client: whether servers ask it for a login.
SECURITY = "hbase.security.authentication"
#: Of HBase's client: a login by a file, in each JVM that has it.
KEYTAB, PRINCIPAL = "hbase.client.keytab.file", "hbase.client.keytab.principal"
#: Spark's own login, which it renews tokens with.
SPARK_KEYTAB, SPARK_PRINCIPAL = "spark.kerberos.keytab", "spark.kerberos.principal"
#: Whether Spark fetches tokens of HBase; of the file systems.
HBASE_TOKENS, FILE_TOKENS = "spark.security.credentials.hbase.enabled", "spark.security.credentials.hadoopfs.enabled"
RENEWAL = "spark.kerberos.renewal.credentials"
FILE_SYSTEMS = "spark.kerberos.access.hadoopFileSystems"
_HADOOP = "spark.hadoop."
#: File systems that give tokens to whom has logged in by Kerberos.
_GIVING = re.compile(r"(hdfs|webhdfs|swebhdfs|viewfs|o3fs|ofs)://[^/]+")
_MASTERS = ("yarn", "k8s://")


def asked(config: Config, master: str) -> bool:
    """Whether executors of *master* are let in by tokens."""
    return master.startswith(_MASTERS) and config.hbase.client_properties().get(SECURITY) == "kerberos"


def submitted(config: Config, master: str) -> dict[str, str]:
    """What ``spark-submit`` is told: who logs in, and whose tokens are fetched besides HBase's. No secrets: paths and
    names.

    Raises:
        UsageError: of Spark's own login, half is given.
    """
    conf = config.spark.conf
    if not asked(config, master):
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
