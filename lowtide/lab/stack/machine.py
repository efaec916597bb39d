"""What the machine must offer: Java, the jars, room on the disk, free ports. Each failure names its remedy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from lowtide.lab.stack.config import HBASE_LINES, StackConfig, StackError, port_is_free

#: HBase 2.5 and 2.6 and their Hadoop run on these. Java 23 takes from Hadoop what its login calls (Subject.getSubject).
JAVA_VERSIONS = range(17, 23)

FREE_DISK = 2 * 1024**3

#: From HBase's own start script: what HBase, Hadoop and Omid reach into since Java 17 keeps its inside closed.
JAVA_OPENS = (
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-modules=jdk.unsupported",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.io",
            "java.lang",
            "java.lang.reflect",
            "java.math",
            "java.net",
            "java.nio",
            "java.text",
            "java.time",
            "java.util",
            "java.util.concurrent",
            "java.util.concurrent.atomic",
            "java.util.regex",
            "jdk.internal.ref",
            "sun.nio.ch",
        )
    ),
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)


def java() -> str:
    """The Java to run with: ``JAVA_HOME``, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        where = f"JAVA_HOME={home}" if home else "the path"
        raise StackError(f"no Java at {where}; install a JDK 17 and set JAVA_HOME to it")
    return found


def check_java() -> None:
    """Refuse a Java that HBase cannot run on."""
    found = java()
    banner = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', banner)
    if not version or int(version[1]) not in JAVA_VERSIONS:
        said = banner.splitlines()[0] if banner else "nothing"
        raise StackError(f"{found} says {said!r}; HBase needs Java 17 to 22: install a JDK 17 and set JAVA_HOME to it")


def java_command(
    class_path: Iterable[str], main_class: str, *args: str, heap: str, options: Sequence[str] = ()
) -> list[str]:
    """The command of a Java program that HBase, Hadoop or Omid are part of; *options* are more options of the virtual
    machine.
    """
    return [
        java(),
        *JAVA_OPENS,
        "-XX:+UseSerialGC",
        f"-Xmx{heap}",
        *options,
        "-Djava.net.preferIPv4Stack=true",
        "-cp",
        os.pathsep.join(class_path),
        main_class,
        *args,
    ]


def embedded_target() -> Path:
    """Where the build of ``embedded/`` leaves its jars, found from this checkout."""
    return Path(__file__).resolve().parents[3] / "embedded" / "target"


def _build(command: str) -> str:
    """How to come by jars that are not there: only a checkout builds them."""
    if (embedded_target().parent / "pom.xml").is_file():
        return f"run `{command}`"
    return f"no wheel has them, a checkout of Lowtide builds them: run `{command}` in one, then use its .venv"


def embedded_classpath(hbase: str = HBASE_LINES[-1]) -> str:
    """The class path of the embedded servers, with that line of HBase's releases, and of the workload: the module's jar
    and its libraries.
    """
    newest = hbase == HBASE_LINES[-1]
    target = embedded_target() if newest else embedded_target() / f"hbase-{hbase}"
    jar, libraries = target / "lowtide-embedded.jar", target / "lib"
    if not jar.is_file() or not any(libraries.glob("hbase-server-*.jar")):
        remedy = "make setup" if newest else f"make hbase-{hbase}"
        raise StackError(f"the embedded store's jars are not in {target}; {_build(remedy)}")
    return os.pathsep.join([str(jar), str(libraries / "*")])


def phoenix_classpath() -> str:
    """The class path of Phoenix's server side and client, to stand after :func:`embedded_classpath`."""
    libraries = embedded_target().parent / "phoenix" / "target" / "lib"
    if not any(libraries.glob("phoenix-core-server-*.jar")):
        raise StackError(f"Apache Phoenix's jars are not in {libraries}; {_build('make phoenix')}")
    return str(libraries / "*")


def key_centre_classpath() -> str:
    """The class path of the key distribution centre; it stands alone, HBase has other versions of its jars."""
    target = embedded_target().parent / "secured" / "target"
    jar, libraries = target / "lowtide-secured.jar", target / "lib"
    if not jar.is_file() or not any(libraries.glob("kerb-simplekdc-*.jar")):
        raise StackError(f"the jars of the key distribution centre are not in {target}; {_build('make secured')}")
    return os.pathsep.join([str(jar), str(libraries / "*")])


def keytool() -> str:
    """Java's own program for keys and certificates, beside the Java to run with."""
    found = Path(java()).resolve().with_name("keytool")
    if not os.access(found, os.X_OK):
        raise StackError(f"there is no keytool beside {java()}; install a JDK 17 and set JAVA_HOME to it")
    return str(found)


def check_disk(home: Path) -> None:
    """Refuse a disk on which HBase would soon stop writing."""
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < FREE_DISK:
        raise StackError(
            f"{existing} has {free / 1024**3:.1f} GiB free, the store needs {FREE_DISK / 1024**3:.0f} GiB; "
            "free some room or choose another home"
        )


def check_ports(config: StackConfig, parts: Iterable[str]) -> None:
    """Refuse when another program listens where one of *parts* is about to."""
    for part in parts:
        port = config.ports.get(part)
        if port and not port_is_free(port):
            raise StackError(
                f"port {port}, meant for {part}, is taken by another program; stop it or give {part} another port"
            )
