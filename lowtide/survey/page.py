"""The survey as one HTML page, in the style of the report: one file that loads nothing and runs no script."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment

from lowtide.report.html import environment, rendered
from lowtide.survey.findings import Severity, Survey
from lowtide.survey.sentences import estimated_size, plan, watermark


def render(survey: Survey) -> str:
    """The page of *survey*: a whole HTML document."""
    return rendered(
        _environment(),
        "survey.html.j2",
        survey=survey,
        watermark=watermark(survey),
        plan=plan(survey),
        danger=Severity.DANGER,
    )


@cache
def _environment() -> Environment:
    return environment("lowtide.survey", "lowtide.report", estimated_size=estimated_size)  # the style is the report's
