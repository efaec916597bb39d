"""What Java's client says where nobody is let in."""

from __future__ import annotations

import pytest

from lowtide.errors import GatewayError
from lowtide.store.gateway import no_answer
from lowtide.store.logins import refusal

KEYTAB = (
    "org.apache.hadoop.security.KerberosAuthException: failure to login: for principal: lowtide@EXAMPLE.ORG from "
    "keytab /etc/lowtide.keytab javax.security.auth.login.LoginException: Unable to obtain password from user\n\tat"
)
CLOSED = "org.apache.hadoop.hbase.exceptions.ConnectionClosedException: Call to a:1 failed on local exception"
EXHAUSTED = "RetriesExhaustedException: Failed after attempts=4, exceptions:\n2026, MasterNotRunningException: "


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (KEYTAB, ("as lowtide@EXAMPLE.ORG", "keytab /etc/lowtide.keytab", "klist -k", "hbase.client.keytab.principal")),
        (
            "java.lang.IllegalArgumentException: Can't get Kerberos realm",
            ("krb5.conf", "spark.driver.extraJavaOptions"),
        ),
        (EXHAUSTED + "SaslException: No common protection layer between client and server", ("hbase.rpc.protection",)),
        (EXHAUSTED + "Server not found in Kerberos database (7)", ("hbase.regionserver.kerberos.principal",)),
        (EXHAUSTED + CLOSED, ("hbase.security.authentication: kerberos",)),
        (
            "java.io.IOException: Found no valid authentication method from options",
            ("neither a valid ticket nor a token", "hbase.client.keytab.file"),
        ),
        (EXHAUSTED + CLOSED, ("hbase.client.netty.tls.enabled: true",)),
        (EXHAUSTED + "NotSslRecordException: not an SSL/TLS record: 00", ("hbase.client.netty.tls.enabled", "no TLS")),
        (
            EXHAUSTED + "javax.net.ssl.SSLHandshakeException: PKIX path building failed",
            ("hbase.rpc.tls.truststore.location", "certificate"),
        ),
        (
            EXHAUSTED + "io.netty.channel.StacklessClosedChannelException",
            ("hbase.rpc.tls.truststore.location", ".password", "not there"),
        ),
        (
            EXHAUSTED + "DecoderException: org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.security.token."
            "SecretManager$InvalidToken): Token has expired",
            ("a token that was fetched with it, has ended", "is safe", "spark.kerberos.keytab"),
        ),
        (
            "AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
            ("HDFS or YARN asks", "spark.kerberos.access.hadoopFileSystems"),
        ),
        ("GSSException: Clock skew too great (37)", ("clocks",)),
        ("sun.security.krb5.KrbException: Cannot get a KDC reply", ("no KDC of the realm answers", "krb5.conf")),
        ("LoginException: Cannot locate KDC", ("no KDC of the realm answers",)),
        ("LoginException: Receive timed out", ("no KDC of the realm answers",)),
        (
            "LoginException: Pre-authentication information was invalid (24)",
            ("another key by now than the keytab",),
        ),
        (
            "SaslException: GSS initiate failed [Caused by GSSException: No valid credentials provided (Mechanism "
            "level: Failed to find any Kerberos tgt)]",
            ("no valid ticket", "kinit"),
        ),
        ("SaslException: GSS initiate failed [Caused by GSSException: something new]", ("GSSException", "log")),
        (
            EXHAUSTED + "io.netty.channel.StacklessClosedChannelException",
            ("hbase.rpc.tls.keystore.location",),
        ),
        *(
            (
                f"{EXHAUSTED}javax.net.ssl.SSLHandshakeException: Received fatal alert: {alert}",
                ("certificate of the client", "hbase.rpc.tls.keystore.location"),
            )
            for alert in ("bad_certificate", "certificate_required", "certificate_unknown")
        ),
    ],
)
def test_it_is_told_with_what_to_do(said: str, words: tuple[str, ...]) -> None:
    """In a sentence that names the setting, not with Java's lines."""
    told = refusal(said)
    assert [word for word in words if word not in told] == []
    assert "\n" not in told
    error = no_answer("the records", OSError(said), "run again")
    assert isinstance(error, GatewayError)
    assert "no answer from the store" not in str(error)


def test_other_words_are_left_to_others() -> None:
    """A server that is down, a right that is missing."""
    assert refusal("java.net.ConnectException: Connection refused") == ""
    assert refusal(f"RemoteWithExtrasException: {CLOSED}") == "", "of a region server that was killed"
    assert refusal("LoginException: Unable to obtain password from user") == "", "nobody is named there"
