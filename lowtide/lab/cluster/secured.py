"""What makes a cluster a secured one: whose keys its servers log in with, and the properties that follow.

The keys are of a secured store's key distribution centre (:mod:`lowtide.lab.stack.secured`), so that a ticket is good
for both. HDFS is ``hdfs``, who may do everything in it; YARN is ``yarn``. Calls and blocks go encrypted. A DataNode's
port is none that root alone can open, as an administrator's would be, or its page would have to speak HTTPS: Hadoop's
own switch for tests lets it pass. What is told over HTTP (states, metrics) everybody on this machine is told.

Containers run as the user who started the cluster, whoever's they are: there is no other on this machine. So who they
are to HDFS and HBase is a matter of their tokens alone.
"""

from __future__ import annotations

from lowtide.lab.stack.config import StackConfig
from lowtide.lab.stack.secured import CLIENTS, CORE, HDFS, REALM, WEB, YARN, keytab

Sites = dict[str, dict[str, str]]

_USERS = ("hdfs", "yarn", "hbase", "omid", *CLIENTS)


def client_properties() -> Sites:
    """What clients are told, by file."""
    return {
        "core-site": {
            **CORE,
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": "privacy",
            # Java's own: there is no native library, and to look for it is told of with a stack trace each time.
            "hadoop.security.crypto.codec.classes.aes.ctr.nopadding": "org.apache.hadoop.crypto.JceAesCtrCryptoCodec",
            # Nobody of them is a user of this machine.
            "hadoop.user.group.static.mapping.overrides": ";".join(f"{user}={user}" for user in _USERS),
        },
        "hdfs-site": {
            "dfs.namenode.kerberos.principal": f"{HDFS}@{REALM}",
            "dfs.datanode.kerberos.principal": f"{HDFS}@{REALM}",
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "privacy",
            # Or it would be 3DES.
            "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
            "dfs.permissions.enabled": "true",
        },
        "yarn-site": {
            "yarn.resourcemanager.principal": f"{YARN}@{REALM}",
            "yarn.nodemanager.principal": f"{YARN}@{REALM}",
        },
    }


def server_properties(realm: StackConfig) -> Sites:
    """What servers are told besides, by file: where their keys lie."""
    hdfs, yarn, web = (str(keytab(realm, name)) for name in (HDFS, YARN, WEB))
    pages = f"{WEB}@{REALM}"
    return {
        "hdfs-site": {
            "dfs.namenode.keytab.file": hdfs,
            "dfs.datanode.keytab.file": hdfs,
            "dfs.web.authentication.kerberos.principal": pages,
            "dfs.web.authentication.kerberos.keytab": web,
            "ignore.secure.ports.for.testing": "true",
        },
        "yarn-site": {
            "yarn.resourcemanager.keytab": yarn,
            "yarn.nodemanager.keytab": yarn,
            "yarn.resourcemanager.webapp.spnego-principal": pages,
            "yarn.resourcemanager.webapp.spnego-keytab-file": web,
            "yarn.nodemanager.webapp.spnego-principal": pages,
            "yarn.nodemanager.webapp.spnego-keytab-file": web,
        },
    }
