"""The stores that this Airflow serves: each with a name, a configuration file, and a pool, DAGs and assets of its own.

An Airflow that serves one store needs no names: its store is the nameless one, whose configuration is that of
``LOWTIDE_CONFIG``. Others are named in the section ``[lowtide]`` of airflow.cfg, with the file of each::

    [lowtide]
    stores = {"orders-prod": "/etc/lowtide/orders-prod.yaml", "orders-test": "/etc/lowtide/orders-test.yaml"}

Every process of Airflow reads that section: DAG files, tasks, the triggerer and the page know the same stores.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk import Asset
from airflow.sdk.configuration import conf

from lowtide.config import CONFIG_VARIABLE, DEFAULTS, Config, load, source
from lowtide.errors import UnnamedStoreError, UsageError
from lowtide.run.submit import POOL
from lowtide.sources import document, variables

_SECTION = "lowtide"
#: Without a dot: that is what parts the name of a store from the name of a thing of it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
#: Variables of the sections that say where a store is, what is its own, and what may be done to it.
_PLACES = tuple(variables.variable_name(section, "") for section in ("hbase", "omid", "state", "ledger", "defaults"))
_EXAMPLE = '{"orders-prod": "/etc/lowtide/orders-prod.yaml"}'


@dataclass(frozen=True, slots=True)
class Assets:
    """What the DAGs of a store tell one another, and whoever else listens; events carry counts in their ``extra``."""

    #: A cleanup is over, and what it cleaned, if anything, is recorded.
    cleaned: Asset
    #: Region watermarks and prune bound were computed from it.
    marked: Asset
    #: A repair of the ledger ended well; where its mode is dry-run it changed nothing, and the settled mark stayed.
    settled: Asset


@dataclass(frozen=True, slots=True)
class Store:
    """One store. *name*: empty for the nameless one; *file*: of its configuration, None where ``LOWTIDE_CONFIG``
    says.
    """

    name: str = ""
    file: Path | None = None

    def id(self, name: str) -> str:
        """What a thing of this store is called in Airflow, where names are everybody's."""
        return f"{self.name}.{name}" if self.name else name

    @property
    def pool(self) -> str:
        """The pool whose one slot lets one job at a time work on the store."""
        return self.id(POOL)

    @property
    def assets(self) -> Assets:
        """The store's own: what one store tells starts nothing of another."""
        below = f"/{self.name}" if self.name else ""
        return Assets(
            Asset(self.id("lowtide_cleaned"), uri=f"lowtide://store{below}/cleaned"),
            Asset(self.id("lowtide_marked"), uri=f"lowtide://store{below}/marked"),
            Asset(self.id("lowtide_settled"), uri=f"lowtide://ledger{below}/settled"),
        )

    def load(self, *, store_named: bool = False) -> Config:
        """Its configuration, read now; *store_named*: as :func:`lowtide.config.load` has it.

        Raises:
            UsageError: the file is missing or wrong; or the environment has a setting that would lead every store to
                one place, or have every store's tables acted on.
            UnnamedStoreError: it does not say where the store is: of a store with a name the file itself must, and
                where its gateway is. Or no store was named, there is no file for that one, and others have names.
        """
        if not (self.name or store_named) and source() == DEFAULTS and (names := sorted(named())):
            fact = f"no store is named, and this Airflow serves {', '.join(names)}"
            raise UnnamedStoreError(fact, f"name one of them, or set {CONFIG_VARIABLE} for the one without a name")
        if self.name and (shared := [each for each in variables.names(os.environ) if each.upper().startswith(_PLACES)]):
            fact = f"{' and '.join(shared)} in the environment would count for every store of this Airflow"
            raise UsageError(fact, f"unset it, and say it in {self.file}")
        config = load(self.file, store_named=store_named, one_of_several=bool(self.name))
        if self.name and "store" not in config.model_fields_set:
            config = config.model_copy(update={"store": self.name})  # what monitoring calls it, too
        return config


def check(text: str) -> dict[str, Path]:
    """Names and files, as ``stores`` of the section ``[lowtide]`` gives them in JSON.

    Raises:
        UsageError: it is no such mapping; says what was found.
    """
    try:
        given = document.from_json(text)
    except document.RepeatedKeysError as error:
        raise UsageError(f"[lowtide] stores has {error}") from error
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise UsageError(f"[lowtide] stores is {text!r}", f"give names and files as JSON, such as {_EXAMPLE}")
    for name, file in given.items():
        if not _NAME.fullmatch(str(name)):
            fact = f"[lowtide] stores has the name {name!r}, which becomes part of the ids of DAGs"
            raise UsageError(fact, "use letters, digits, - and _, such as orders-prod")
        if not isinstance(file, str) or not Path(file).is_absolute():
            fact = f"[lowtide] stores has {file!r} for {name}"
            raise UsageError(fact, f"give the whole path of its configuration, such as {_EXAMPLE}")
        if same := [each for each in given if each != name and Path(given[each]).resolve() == Path(file).resolve()]:
            fact = (
                f"[lowtide] stores has {file} for {name} and for {same[0]}: jobs would work on one store side by side"
            )
            raise UsageError(fact, "give each store one name")
    return {name: Path(file) for name, file in given.items()}


def named() -> dict[str, Store]:
    """The stores that have a name, by it.

    Raises:
        UsageError: the setting cannot be used; says what was found.
    """
    text = conf.get(_SECTION, "stores", fallback="").strip() or "{}"
    return {name: Store(name, file) for name, file in check(text).items()}


def served() -> list[str]:
    """The names of the stores that the page can show, never none: the nameless one first, where ``LOWTIDE_CONFIG``
    leads to one or no other is named.

    Raises:
        UsageError: the setting cannot be used.
    """
    names = sorted(named())
    return ["", *names] if not names or os.environ.get(CONFIG_VARIABLE) else names


def store(name: str | None = None) -> Store:
    """The store of that name; the nameless one where there is none.

    Raises:
        UsageError: no store is called so; names those that are.
    """
    if not name:
        return Store()
    known = named()
    if name not in known:
        there = f"it names {', '.join(sorted(known))}" if known else "it names none"
        fact = f"there is no store {name!r} in the section [lowtide] of airflow.cfg: {there}"
        raise UsageError(fact, f"add it there, with its configuration: stores = {_EXAMPLE}")
    return known[name]
