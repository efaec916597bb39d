"""Single settings as environment variables: ``LOWTIDE_SECTION__KEY``, read by pydantic-settings.

Of a section alone: ``grace``, ``allow_no_grace`` and ``tables`` decide what may be removed, ``store`` says what the
rest is about, and they are the file's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, create_model
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from lowtide.errors import UsageError

PREFIX, BETWEEN = "LOWTIDE_", "__"


def settings(model: type[BaseModel]) -> dict[str, Any]:
    """What the environment says of the sections of *model*, nested as the file has it. Lists and mappings are JSON.

    Raises:
        UsageError: a variable names no setting, or is no JSON where that is expected; the message names it.
    """
    sections = {name: field.annotation for name, field in model.model_fields.items() if _is_section(field.annotation)}
    known = {variable_name(*path): path for name, kind in sections.items() for path in _paths(kind, (name,))}
    given = names(os.environ)
    for variable in given:
        _check_known(variable, known, model)
    fields: dict[str, Any] = {name: (kind, None) for name, kind in sections.items()}
    source = EnvSettingsSource(
        create_model("Variables", __base__=BaseSettings, **fields),
        case_sensitive=False,
        env_prefix=PREFIX,
        env_nested_delimiter=BETWEEN,
    )
    try:
        return source()
    except SettingsError as error:
        fact = f"one of {', '.join(given)} cannot be read: a list or a mapping is expected as JSON"
        raise UsageError(fact, """write it as in LOWTIDE_OMID__ORACLE='["tso1:24758"]'""") from error


def names(environment: Mapping[str, str]) -> list[str]:
    """The variables that are settings, or meant to be: others of that prefix have no double underscore."""
    return sorted(name for name in environment if name.upper().startswith(PREFIX) and BETWEEN in name)


def variable_name(*path: str) -> str:
    """The variable of a setting: of ``hbase``, ``znode`` it is ``LOWTIDE_HBASE__ZNODE``."""
    return PREFIX + BETWEEN.join(path).upper()


def _check_known(variable: str, known: Mapping[str, tuple[str, ...]], model: type[BaseModel]) -> None:
    if variable.upper() in known:
        return
    near = get_close_matches(variable.upper(), known, n=1, cutoff=0.8)
    remedy = f"{near[0]} may be meant" if near else "see docs/configuration.md for the known ones"
    section = variable.upper().removeprefix(PREFIX).partition(BETWEEN)[0].lower()
    if section in model.model_fields and not _is_section(model.model_fields[section].annotation):
        remedy = f"{section} is set in the file alone"
    fact = f"the environment variable {variable} names no setting"
    raise UsageError(fact, f"{remedy}; unset it")


def _paths(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in kind.model_fields.items():
        yield from _paths(field.annotation, (*path, name)) if _is_section(field.annotation) else ((*path, name),)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
