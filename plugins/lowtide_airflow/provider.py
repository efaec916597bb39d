"""What Airflow asks of an installed package: its connection types, with their form. It imports no Airflow: every server
imports this.
"""

from __future__ import annotations

from typing import Any

from lowtide.run import airflows


def provider_info() -> dict[str, Any]:
    """The connection type ``hbase`` (entry point ``apache_airflow_provider``); none where this Airflow does not fit:
    it would look for a hook that it cannot load. The plugin says what is wrong.
    """
    about = {"package-name": "lowtide", "name": "Lowtide", "description": "Maintenance for transactional HBase."}
    if airflows.problem():
        return about
    return {
        **about,
        "connection-types": [
            {
                "connection-type": "hbase",
                "hook-class-name": "lowtide_airflow.hook.HBaseHook",
                "hook-name": "HBase (Thrift gateway)",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "login", "password"],
                    "relabeling": {"host": "Gateway", "port": "Port of the gateway"},
                    "placeholders": {"port": "9090"},
                },
                "conn-fields": {
                    "transport": _field("Transport", "of the gateway", enum=["buffered", "framed", "http", "https"]),
                    "protocol": _field("Protocol", "of the gateway", enum=["binary", "compact"]),
                    "timeout": _field("Timeout", "of one call, as in 30s"),
                    "login": _field("Login", "that the gateway asks for", enum=["none", "kerberos"]),
                    "principal": _field("Principal", "that logs in, as in lowtide@EXAMPLE.ORG"),
                    "keytab": _field("Keytab", "of the principal: the file's whole path on workers and triggerer"),
                    "ticket_cache": _field("Ticket cache", "in place of a keytab: the file's whole path"),
                    "service": _field("Service", "that the gateway logs in as, as in thrift/gateway.example.org"),
                    "qop": _field("Protection", "after a login without HTTP", enum=["auth", "auth-int", "auth-conf"]),
                    "ca_file": _field("Trust", "over https: the whole path of a file of certificates (PEM)"),
                    "do_as": _field("Act as", "over HTTP: the user, if the gateway lets the principal"),
                    "store": _field("Store", "as airflow.cfg names it under [lowtide]"),
                    "table_prefix": _field("Table prefix", "of the ledger's tables"),
                    "pool_size": {
                        "label": "Pool size",
                        "description": "Connections of one node. Empty: as in Lowtide's configuration.",
                        "schema": {"type": ["integer", "null"], "minimum": 1},
                    },
                },
            }
        ],
    }


def _field(label: str, about: str, enum: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if enum:
        schema["enum"] = [*enum, None]
    return {"label": label, "description": f"{label} {about}. Empty: as in Lowtide's configuration.", "schema": schema}
