"""``core-site.xml`` and ``hbase-site.xml``: what a cluster's own files say of how to reach it, as settings of ours.

Only what a client needs is taken. ``hbase.rootdir`` is not: where it is given, large tables are read from HBase's own
files, for which usually HBase's user alone has the rights, so it has to be asked for. What servers are told is not
either: it may hold passwords, and what is taken travels to every executor. So do the passwords of the key and trust
store of HBase's TLS, without which no client reads a store whose place is taken: to Spark inside the driver and to
executors with the plan, on no command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lowtide.errors import UsageError
from lowtide.sources import secrets

#: In the order in which Hadoop reads them: the later one wins.
CORE, HBASE = "core-site.xml", "hbase-site.xml"
#: Where Hadoop's and HBase's own scripts look, in the order in which we do.
VARIABLES = ("HBASE_CONF_DIR", "HADOOP_CONF_DIR")
#: The properties that are settings of ours under other names: together they are a store's address.
ADDRESS = {
    "hbase.zookeeper.quorum": "zookeeper_quorum",
    "hbase.zookeeper.property.clientPort": "zookeeper_port",
    "zookeeper.znode.parent": "znode",
}
#: Whether a client needs a property, by its name.
_OF_CLIENTS = re.compile(
    r"hbase\.rpc\.tls\.(?:truststore|keystore)\.password|(?!.*password)(?:hbase\.(client|rpc|ipc\.client|security|sasl|masters$|unsafe\.client|netty\.rpc)\b.*|zookeeper\..*"
    r"|hbase\.zookeeper\.(?!property\.).*|hbase\.(master|regionserver)\.kerberos\.principal)"
)
_LOGINS = "hadoop.security.authentication"
_REFERENCE = re.compile(r"\$\{([^}$\s]+)\}")


def found(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder with an ``hbase-site.xml`` that the environment leads to; None: there is none."""
    folders = (Path(environment[name]) for name in VARIABLES if environment.get(name))
    return next((folder for folder in folders if (folder / HBASE).is_file()), None)


def hinted(environment: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
    """The variable that says where a cluster's files are, and what it says, whether or not they are there; None: none
    is set.
    """
    return next(((name, environment[name]) for name in VARIABLES if environment.get(name)), None)


def settings(folder: Path) -> dict[str, Any]:
    """What the files in *folder* say, as the configuration's section ``hbase`` has it.

    Raises:
        UsageError: there is no ``hbase-site.xml``, or a file cannot be used; the message names it.
    """
    if not (folder / HBASE).is_file():
        fact = f"hbase.conf_dir is {folder}, and there is no {HBASE} in it"
        raise UsageError(fact, "name the folder that has the cluster's client configuration, or leave the key out")
    known: dict[str, str] = {}
    for file in (folder / CORE, folder / HBASE):
        if file.is_file():
            known |= _properties(file)
    taken = {name: _resolved(name, known, folder) for name in known if name in ADDRESS or _OF_CLIENTS.fullmatch(name)}
    address = {ADDRESS[name]: taken.pop(name) for name in ADDRESS if name in taken}
    return {**address, **({"properties": taken} if taken else {})}


def root(folder: Path, address: str) -> str | None:
    """HBase's root folder as the servers' own file in *folder* has it, if theirs is the store at *address*
    (quorum:port/znode); None: it is not, or there is no file.
    """
    if not (folder / HBASE).is_file():
        return None
    known = _properties(folder / HBASE)
    quorum, port, znode = (known.get(name, "") for name in ADDRESS)
    return known.get("hbase.rootdir") if f"{quorum}:{port}{znode}" == address else None


def asks_for_logins(folder: Path) -> bool:
    """Whether Hadoop's file systems and YARN ask for logins by Kerberos, as the ``core-site.xml`` in *folder* says;
    not, where there is none or it cannot be read here.
    """
    try:
        known = _properties(folder / CORE)
        return _resolved(_LOGINS, {_LOGINS: "simple", **known}, folder).strip().lower() == "kerberos"
    except UsageError:
        return False


def _properties(file: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError) as error:
        fact = f"{file} cannot be read as Hadoop's XML: {error}"
        raise UsageError(fact, "correct it, or set hbase.conf_dir to another folder") from error
    if any(element.tag.endswith("}include") for element in root.iter()):
        fact = f"{file} includes another file (xi:include), which is not followed"
        raise UsageError(fact, "set hbase.conf_dir to a folder whose files are whole")
    pairs = ((element.findtext("name"), element.findtext("value")) for element in root.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in pairs if name and name.strip()}


def _resolved(name: str, known: Mapping[str, str], folder: Path) -> str:
    """The value of *name*, with ``${...}`` replaced as Hadoop does: by other properties, and by the environment."""
    value = known[name]
    for _ in range(20):  # as deep as Hadoop goes
        match = _REFERENCE.search(value)
        if not match:
            return value
        inner = match[1]
        replacement = os.environ.get(inner[4:]) if inner.startswith("env.") else known.get(inner)
        if replacement is None:
            break
        value = value[: match.start()] + replacement + value[match.end() :]
    said = "has a reference" if secrets.is_secret(name) else f"is {known[name]}"
    fact = f"{name} in {folder} {said}, of which no file there says what it stands for"
    raise UsageError(fact, "write it out, or set it in the configuration, under hbase")
