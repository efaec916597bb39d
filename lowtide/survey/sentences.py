"""What terminal and page have in common: estimated sizes, the low watermark, the plan, in sentences. Pure."""

from __future__ import annotations

from datetime import timedelta

from lowtide.survey.estimate import Estimate
from lowtide.survey.findings import Survey
from lowtide.values.text import age_text, size_text, took_text


def estimated_size(estimate: Estimate) -> str:
    """Estimated bytes, with the interval where they are no count."""
    if estimate.is_exact:
        return size_text(estimate.value)
    return f"{size_text(estimate.value)} ({size_text(estimate.low)} to {size_text(estimate.high)})"


def watermark(survey: Survey) -> str:
    """The low watermark in a sentence."""
    known = (
        "its age is not known yet"
        if survey.watermark_age is None
        else f"{age_text(timedelta(seconds=survey.watermark_age))} old"
    )
    return f"Low watermark {survey.low_watermark}, {known}: what began at or before it is judged, nothing above it."


def plan(survey: Survey) -> list[str]:
    """What a cleanup would do here, and for how long, in sentences."""
    found = []
    if survey.sample is not None and any(not t.is_exact for t in survey.tables):
        found.append(
            f"Estimated from {survey.sample:.0%} of the regions; in parentheses the 95 % interval. A cell whose only "
            "proof lies in a region that was not read counts as an orphan here; a cleanup searches all of them."
        )
    rows = survey.commit_table.settled if survey.commit_table else 0
    if not survey.tables:
        return [*found, "No transactional table was read."]
    found.append(
        f"Lowtide would delete {survey.orphans} cells, heal {survey.heals}, put {survey.marks_to_put:,} invalidation "
        f"marks first and, when every region is clean and the grace over, prune {rows:,} rows of the commit table and "
        "those marks."
    )
    paced = f", reading at most {survey.rate:,} cells/s" if survey.rate else ""
    found.append(f"The first cleanup takes about {took_text(survey.cleanup_seconds)} where this survey ran{paced}.")
    found.append("Nothing was written. Next, the same as a dry run with its records: lowtide run orphan_cleanup")
    return found
