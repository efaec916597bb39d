"""The survey as one HTML page, in the style of the report: one file that loads nothing and runs no script."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from lowtide.survey.findings import Severity, Survey
from lowtide.survey.words import age, plan, size, size_of, watermark


def render(survey: Survey) -> str:
    """The page of *survey*: a whole HTML document."""
    page = (
        _environment()
        .get_template("survey.html.j2")
        .render(survey=survey, watermark=watermark(survey), plan=plan(survey), danger=Severity.DANGER)
    )
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        # The style is the report's.
        loader=ChoiceLoader(
            [PackageLoader("lowtide.survey", "templates"), PackageLoader("lowtide.report", "templates")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"n": _number, "size": size, "size_of": size_of, "age": age, "share": _share}
    return environment


def _number(value: int) -> str:
    return f"{value:,}"


def _share(value: int, most: int) -> float:
    """*value* in percent of *most*; what is not 0 stays visible."""
    return round(max(100 * value / most, 1.0), 2) if value and most else 0
