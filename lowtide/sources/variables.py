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
        UsageError: a variable names no setting, or is no JSON where that is expected, or would name one with two
            underscores in place of one; the message names it.
    """
    sections = _sections(model)
    known = known_settings(model)
    given = names(os.environ)
    for variable in given:
        _check_known(variable, known, model)
    for variable, value in os.environ.items():
        # What Kubernetes tells of a service: LOWTIDE_HBASE_THRIFT_PORT of one called lowtide-hbase-thrift.
        if BETWEEN not in variable and not value.startswith("tcp://"):
            _check_meant(variable, known, model)
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


def known_settings(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Every variable that is a setting of *model*, with the path of its key."""
    return {variable_name(*path): path for name, kind in _sections(model).items() for path in _paths(kind, (name,))}


def names(environment: Mapping[str, str]) -> list[str]:
    """The variables that are settings, or meant to be: those with a double underscore."""
    return sorted(name for name in environment if name.upper().startswith(PREFIX) and BETWEEN in name)


def variable_name(*path: str) -> str:
    """The variable of a setting: of ``hbase``, ``znode`` it is ``LOWTIDE_HBASE__ZNODE``."""
    return PREFIX + BETWEEN.join(path).upper()


def _check_known(variable: str, known: Mapping[str, tuple[str, ...]], model: type[BaseModel]) -> None:
    if variable.upper() in known:
        return
    near = get_close_matches(variable.upper(), known, n=1, cutoff=0.8)
    remedy = f"{near[0]} may be meant" if near else "see docs/configuration.md for the known ones"
    raise _no_setting(variable, _of_the_file(variable, model) or remedy)


def _check_meant(variable: str, known: Mapping[str, tuple[str, ...]], model: type[BaseModel]) -> None:
    """Refuse a variable without two underscores that can only be meant as a setting, and would have no effect; and a
    whole section.
    """
    name = variable.upper()
    meant = [right for right in known if right.replace(BETWEEN, "_") == name]
    if meant:
        raise _no_setting(variable, f"{meant[0]} is meant, with two underscores")
    if section := next((path[0] for path in known.values() if variable_name(path[0]) == name), ""):
        raise _no_setting(variable, f"a section is set key by key, {variable_name(section, 'KEY')}")
    if remedy := _of_the_file(variable, model):
        raise _no_setting(variable, remedy)


def _of_the_file(variable: str, model: type[BaseModel]) -> str:
    """That only the file has the key that *variable* begins with; empty: it is none, or a section's."""
    key = variable.upper().removeprefix(PREFIX).partition(BETWEEN)[0].lower()
    field = model.model_fields.get(key) if variable.upper().startswith(PREFIX) else None
    return f"{key} is set in the file alone" if field and not _is_section(field.annotation) else ""


def _no_setting(variable: str, remedy: str) -> UsageError:
    return UsageError(f"the environment variable {variable} names no setting", f"{remedy}; unset it")


def _sections(model: type[BaseModel]) -> dict[str, Any]:
    return {name: field.annotation for name, field in model.model_fields.items() if _is_section(field.annotation)}


def _paths(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in kind.model_fields.items():
        yield from _paths(field.annotation, (*path, name)) if _is_section(field.annotation) else ((*path, name),)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
