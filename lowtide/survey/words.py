"""What terminal and page say alike: sizes, ages, and the plan in sentences. Pure."""

from __future__ import annotations

from lowtide.survey.estimate import Estimate
from lowtide.survey.findings import Survey

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1."""
    number, unit = float(count), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def size_of(estimate: Estimate) -> str:
    """Estimated bytes, with the interval where they are no count."""
    if estimate.is_exact:
        return size(estimate.value)
    return f"{size(estimate.value)} ({size(estimate.low)} to {size(estimate.high)})"


def age(seconds: float) -> str:
    """A length of time in its largest unit."""
    for name, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.0f} seconds"


def watermark(survey: Survey) -> str:
    """The low watermark in a sentence."""
    known = "its age cannot be told yet" if survey.watermark_age is None else f"{age(survey.watermark_age)} old"
    return f"Low watermark {survey.low_watermark:,}, {known}: what began at or before it is judged, nothing above it."


def plan(survey: Survey) -> list[str]:
    """What a cleanup would do here, and for how long, in sentences."""
    found = []
    if survey.sample is not None and any(not t.is_exact for t in survey.tables):
        found.append(
            f"Estimated from {survey.sample:.0%} of the regions; in parentheses the 95 % interval. A cell whose only proof lies in "
            "a region that was not read counts as an orphan here; a cleanup searches all of them."
        )
    rows = survey.commit_table.settled if survey.commit_table else 0
    if not survey.tables:
        return [*found, "No transactional table was looked at."]
    found.append(
        f"Lowtide would delete {survey.orphans} cells, heal {survey.heals}, put {survey.marks_to_put:,} invalidation marks first "
        f"and, when every region is clean and the grace over, prune {rows:,} rows of the commit table and those marks."
    )
    paced = f", reading at most {size(survey.rate)}/s" if survey.rate else ""
    found.append(f"The first cleanup takes about {age(survey.cleanup_seconds)} where this survey ran{paced}.")
    found.append("Nothing was written. Next, the same as a dry run with its records: lowtide run orphan_cleanup")
    return found
