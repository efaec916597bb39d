"""``make release``: the parts of it that build nothing."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import release


def connector(folder: Path, moment: int) -> Path:
    """A folder as the build of the connector leaves it: with more in it than goes out."""
    for name in ("lowtide-connector.jar", "lib/b.jar", "lib/a.jar", "classes/lowtide/X.class"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())
        file.chmod(0o600 + moment % 8)
        os.utime(file, (moment, moment))
    return folder


def test_the_archive_is_what_yarn_unpacks(tmp_path: Path) -> None:
    """The jar at the root and its own in lib, as the class path of docs/clusters.md has them; nothing else."""
    release.archive(connector(tmp_path / "target", 1), tmp_path / "connector.tgz", 1_700_000_000)
    with tarfile.open(tmp_path / "connector.tgz") as packed:
        assert packed.getnames() == ["lowtide-connector.jar", "lib/a.jar", "lib/b.jar"]


def test_equal_jars_make_equal_archives(tmp_path: Path) -> None:
    """Whenever and by whom they were built: a checksum says that two releases are one."""
    made = []
    for number in (1, 2):
        to = tmp_path / f"{number}.tgz"
        release.archive(connector(tmp_path / str(number), 1_000_000 * number), to, 1_700_000_000)
        made.append(to.read_bytes())
    assert made[0] == made[1]


def test_no_archive_without_the_connector(tmp_path: Path) -> None:
    """Nothing goes out that is empty."""
    with pytest.raises(SystemExit, match=r"there is no connector with its jars in .*; run make setup"):
        release.archive(tmp_path, tmp_path / "connector.tgz", 0)


def test_no_archive_with_two_clients_of_hbase(tmp_path: Path) -> None:
    """One is of an earlier build: they would answer for each other."""
    folder = connector(tmp_path / "target", 1)
    for version in ("2.6.3", "2.6.4"):
        (folder / "lib" / f"hbase-shaded-mapreduce-{version}.jar").touch()
    told = r"has 2 HBase clients \(hbase-shaded-mapreduce-2\.6\.3\.jar, .*2\.6\.4\.jar\).*run make setup"
    with pytest.raises(SystemExit, match=told):
        release.archive(folder, tmp_path / "connector.tgz", 0)


def test_a_release_without_git_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked archive has no commit; and a machine need not have the program."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"is no checkout of git: make it in a clone"):
        release._moment()
    (tmp_path / ".git").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"a release needs git, which does not start: No such file"):
        release._moment()


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    """Each file has a line, the list itself has none; a changed file is noticed."""
    (tmp_path / "a.whl").write_text("a")
    (tmp_path / "b.tgz").write_text("b")
    (tmp_path / release.SUMS).write_text(release.sums(tmp_path))
    assert release.sums(tmp_path).count("\n") == 2
    check = ["sha256sum", "--check", "--strict", release.SUMS]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "b.tgz").write_text("c")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_a_changed_tree_is_no_release() -> None:
    """It is refused by the names of what changed, a few of them."""
    assert release.changed("") is None
    assert release.changed(" M lowtide/config.py\n?? notes.txt\n") == (
        "a release is a commit, and the tree differs from it in lowtide/config.py, notes.txt; commit them or take them "
        "away"
    )
    assert "d, e and 2 more" in str(release.changed("".join(f" M {name}\n" for name in "abcdefg")))


def test_a_release_has_its_day_in_the_changelog() -> None:
    """Until it is written there, the changelog is not one of a release."""
    assert release.dated("# Changelog\n\n## 0.2.0 - 2026-12-01\n", "0.2.0")
    assert not release.dated("# Changelog\n\n## 0.2.0 - not released yet\n", "0.2.0")
    assert not release.dated("# Changelog\n\n## 0.1.0 - 2026-12-01\n", "0.2.0")
