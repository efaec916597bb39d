"""Pages from templates, for the report and the survey: which filters they have, and that no blank lines are left."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from lowtide.values.text import age_text, moment_text, size_text, took_text


def environment(*packages: str, **filters: Callable[..., object]) -> Environment:
    """An environment for the templates of *packages*, the first that has one; with *filters* beside those of all
    pages.
    """
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "n": _number,
        "share": _share,
        "size": size_text,
        "age": age_text,
        "took": took_text,
        "time": moment_text,
        **filters,
    }
    return found


def rendered(found: Environment, template: str, **values: object) -> str:
    """A whole document, without blank lines."""
    page = found.get_template(template).render(**values)
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"


def _number(value: int) -> str:
    return f"{value:,}"


def _share(value: int, most: int) -> float:
    """*value* in percent of *most*; what is not 0 stays visible."""
    return round(max(100 * value / most, 1.0), 2) if value and most else 0
