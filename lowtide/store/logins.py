"""What Java's client of HBase says where nobody is let in, by login or by TLS, for people. Pure.

Of the Thrift gateway's logins it is :mod:`lowtide.store.kerberos` that speaks.
"""

from __future__ import annotations

import re

_KEYTAB = re.compile(r"for principal: (\S+) from keytab (\S+)")
_CLUSTER = "take it from the cluster's hbase-site.xml (hbase.conf_dir), or set it among hbase.properties"
#: What Java's errors have in them somewhere, and what that means.
_MEANINGS = (
    (
        "Found no valid authentication method from options",
        "HBase asks for a login by Kerberos, and the driver or an executor has none: neither a valid ticket nor "
        "a token nor hbase.client.keytab.file and .principal among hbase.properties. Of ticket caches Java reads files "
        "alone (KRB5CCNAME=FILE:/PATH). See docs/clusters.md, Kerberos",
    ),
    (
        "SecretManager$InvalidToken",
        "the login, or a token that was fetched with it, has ended, and nobody renewed it in time; what was done until "
        "then is safe. Have something renew the ticket cache, or set spark.kerberos.keytab and .principal in "
        "spark.conf, and run again",
    ),
    (
        "Client cannot authenticate via:[TOKEN, KERBEROS]",
        "HDFS or YARN asks for a login by Kerberos, and the driver has no valid ticket, or an executor no token: those "
        "of more file systems are fetched where spark.kerberos.access.hadoopFileSystems names them",
    ),
    (
        "Can't get Kerberos realm",
        "Java knows no realm of Kerberos's: put krb5.conf where it looks (/etc/krb5.conf), or name the file by "
        "-Djava.security.krb5.conf=FILE in spark.driver.extraJavaOptions and spark.executor.extraJavaOptions",
    ),
    (
        "No common protection layer",
        f"HBase and this client do not agree on hbase.rpc.protection: {_CLUSTER}",
    ),
    (
        "Server not found in Kerberos database",
        "the realm has no server of HBase's by the name in hbase.master.kerberos.principal or "
        f"hbase.regionserver.kerberos.principal: {_CLUSTER}",
    ),
    (
        "Clock skew too great",
        "the clocks of this machine, the KDC and HBase's servers are minutes apart: set them right",
    ),
    *(
        (words, "no KDC of the realm answers: see that the one in krb5.conf is the right one and runs")
        for words in ("Cannot get a KDC reply", "Cannot locate KDC", "Receive timed out")
    ),
    (
        "Pre-authentication information was invalid",
        "the KDC does not take the key or the password of who logs in: the principal has another key by now than the "
        "keytab. Have that made again",
    ),
    (
        "Failed to find any Kerberos tgt",
        "a login by Kerberos is asked for, and the driver or an executor has no valid ticket: run kinit, have "
        "something renew the cache, or set a keytab. Of ticket caches Java reads files "
        "alone (KRB5CCNAME=FILE:/PATH). See docs/clusters.md, Kerberos",
    ),
    (  # of a server that was killed it is the region server's connection, or there is none
        "MasterNotRunningException: org.apache.hadoop.hbase.exceptions.ConnectionClosedException",
        "HBase ends the connection. It does so without a word where it asks for a login and none is shown: then set "
        "hbase.security.authentication: kerberos among hbase.properties, or in the cluster's hbase-site.xml "
        "(hbase.conf_dir); and where it takes TLS alone: hbase.client.netty.tls.enabled: true. Else see its log",
    ),
    (
        "NotSslRecordException",
        "HBase's servers speak no TLS, and hbase.client.netty.tls.enabled says so: take it off",
    ),
    *(
        (
            f"Received fatal alert: {alert}",
            "HBase's servers ask for a certificate of the client and do not take this one's, or it shows none: "
            "hbase.rpc.tls.keystore.location names the store that has it, with its key, and the servers have to trust "
            "its authority; nor do they take one that bears no name or address of the client's host, unless their "
            "hbase.server.netty.tls.verify.client.hostname is false",
        )
        for alert in ("bad_certificate", "certificate_required", "certificate_unknown")
    ),
    (
        "SSLHandshakeException",
        "HBase's servers show a certificate that this client does not take: its authority is not in the store that "
        "hbase.rpc.tls.truststore.location names, or it bears another host's name. Both are the administrator's to "
        "tell; the driver's log says which it is",
    ),
    (  # raised where the handler of TLS cannot be made: the reason stands in the log alone
        "StacklessClosedChannelException",
        "no connection to HBase can be made. Where hbase.client.netty.tls.enabled is set, the store that "
        "hbase.rpc.tls.truststore.location names, or the one with this client's certificate "
        "(hbase.rpc.tls.keystore.location), cannot be used: it is not there for this user to read, it is of another "
        "type or has another password than .type and .password beside it say, or nothing is in it; the driver's log "
        "says which it is (NettyRpcConnection)",
    ),
    (  # around most of what is above, and around what has no words here
        "GSS initiate failed",
        "a login by Kerberos to HBase, HDFS or YARN failed; the driver's log has the reason (GSSException). See "
        "docs/clusters.md, Kerberos",
    ),
)


def refusal(error: object) -> str:
    """Why there is no login to HBase, or none that it takes, and what to do; empty where *error*, as it prints, tells
    of something else.
    """
    text = str(error)
    if "Unable to obtain password from user" in text and (found := _KEYTAB.search(text)):
        principal, keytab = found[1], found[2]
        return (
            f"no login to HBase as {principal}: the keytab {keytab} is not there for this user to read, or has no key "
            f"of {principal}. `klist -k {keytab}` shows whose keys it has; hbase.client.keytab.file and "
            "hbase.client.keytab.principal among hbase.properties name both"
        )
    return next((meaning for words, meaning in _MEANINGS if words in text), "")
