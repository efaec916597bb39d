"""Which releases of HBase's servers Lowtide was tried with. Pure."""

from __future__ import annotations

from lowtide.values.text import names_text

#: Lines of releases: the tests ran against a release of each, docs/versions.md says which.
TRIED = ("2.5", "2.6")


def line_of(version: str) -> str:
    """The line that a *version* belongs to: ``2.6`` of ``2.6.4-hadoop3``."""
    return ".".join(version.split("-")[0].split(".")[:2])


def untried(version: str) -> str:
    """What is to be known of servers of this *version*, in a sentence without a full stop; empty where a release of
    their line was tried, or where the version is not known.
    """
    if not version or line_of(version) in TRIED:
        return ""
    return (
        f"HBase's servers are of version {version}; Lowtide was tried with {names_text(TRIED)}. Look at what "
        "lowtide survey and a dry run find before anything acts"
    )
