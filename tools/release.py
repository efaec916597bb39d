#!/usr/bin/env python3
"""What goes out with a version, in dist/VERSION and nothing else there: both wheels, the connector as the archive that
YARN ships, the list of versions that were tried, the changelog, and checksums of all (``make release``).

Times in the files are the commit's, so that a commit built twice with the same tools gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"


def main() -> None:
    """Build the release of the commit that is checked out."""
    version, moment = _version(), _moment()
    out = ROOT / "dist" / version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.environ["SOURCE_DATE_EPOCH"] = str(moment)
    for project in (ROOT, ROOT / "lowtide" / "lab"):
        # What a build before this one left, perhaps of modules that are no longer there.
        shutil.rmtree(ROOT / ".lowtide" / "build" / "lab", ignore_errors=True)
        _run(str(Path(sys.executable).with_name("uv")), "build", "-q", "--wheel", "-o", str(out), str(project))
    for left in out.glob(".*"):  # uv's own
        left.unlink()
    archive(ROOT / "connector" / "target", out / f"lowtide-connector-{version}.tgz", moment)
    for file in ("CHANGELOG.md", "docs/versions.md", "tests/versions.json"):
        shutil.copyfile(ROOT / file, out / Path(file).name)
    (out / SUMS).write_text(sums(out))
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size / 1e6:7.1f} MB  {file.relative_to(ROOT)}")
    if not dated((ROOT / "CHANGELOG.md").read_text("utf-8"), version):
        print(f"CHANGELOG.md has no date yet: write the day after {version} in its heading, commit, and make it again")


def archive(folder: Path, to: Path, moment: int) -> None:
    """The connector's jar, and in ``lib`` what it needs, at the root of an archive: so that unpacked under the name
    ``connector`` it is the class path of docs/clusters.md. Equal files give equal bytes.

    Raises:
        SystemExit: the connector is not built, or has two HBase clients.
    """
    jars = [folder / "lowtide-connector.jar", *sorted((folder / "lib").glob("*.jar"))]
    if len(jars) < 2 or not jars[0].exists():
        raise SystemExit(f"there is no connector with its jars in {folder}; run make setup, which builds it")
    clients = [jar.name for jar in jars if jar.name.startswith("hbase-shaded-mapreduce-")]
    if len(clients) > 1:
        raise SystemExit(
            f"{folder} has {len(clients)} HBase clients ({', '.join(clients)}), one of an earlier build: remove it and "
            ".lowtide/setup/connector, then run make setup"
        )

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.mode = moment, 0o644
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    # The archive's own name and time would stand in the file, too.
    with (
        to.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for jar in jars:
            tar.add(jar, str(jar.relative_to(folder)), filter=plain)


def sums(folder: Path) -> str:
    """A line a file, as ``sha256sum --check`` reads it, but for the list itself."""
    files: Iterable[Path] = (file for file in sorted(folder.iterdir()) if file.name != SUMS)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def dated(changelog: str, version: str) -> bool:
    """Whether the heading of *version* says when it was released."""
    return bool(re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE))


def changed(status: str) -> str | None:
    """Why nothing is built from a tree with this ``git status --porcelain``; None: it is as the commit has it. Pure."""
    if not (files := [line[3:] for line in status.splitlines()]):
        return None
    shown = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    return f"a release is a commit, and the tree differs from it in {shown}; commit them or take them away"


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "lowtide" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if not found:
        raise SystemExit("lowtide/__init__.py names no __version__")
    return found[1]


def _moment() -> int:
    """When the commit was made, in seconds; refused where the tree is not that of the commit, or there is none."""
    if not (ROOT / ".git").exists():
        raise SystemExit(f"a release is a commit, and {ROOT} is no checkout of git: make it in a clone")
    if why := changed(_run("git", "status", "--porcelain")):
        raise SystemExit(why)
    return int(_run("git", "log", "-1", "--format=%ct"))


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"a release needs {command[0]}, which does not start: {error.strerror}") from error
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
