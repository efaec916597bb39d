"""The configuration of a command: which store is meant, asked for where it is not plain, and said before anything is
done to it.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from lowtide.config import THIS_MACHINE, Config, HBase, load, source
from lowtide.errors import UnnamedStoreError
from lowtide.sources.variables import variable_name
from lowtide.terminal.console import asks, note


def configured(file: Path | None) -> Config:
    """The configuration, for a command that only looks.

    Raises:
        UnnamedStoreError: nothing says which store is meant, and nobody is there to be asked.
    """
    try:
        return load(file)
    except UnnamedStoreError as error:
        if not asks():
            raise
        typer.confirm(f"{error.fact[:1].upper()}{error.fact[1:]}. Take it all the same?", abort=True, err=True)
        # In the environment: a job that is submitted is not asked again.
        os.environ[variable_name(*THIS_MACHINE)] = HBase().zookeeper_quorum
        return load(file)


def configured_to_act(file: Path | None, *, by_gateway: bool = True) -> Config:
    """The configuration, for a command that does something to the store, which is named on stderr.

    Args:
        file: that was given.
        by_gateway: whether it does that through the Thrift gateway. A job does not, and compares for itself where the
            gateway leads.

    Raises:
        UnnamedStoreError: as :func:`configured`; or the store is on other machines and its gateway was not named.
    """
    config = configured(file)
    if by_gateway:
        config.hbase.check_gateway()
    thrift = config.hbase.thrift
    note(f"store {config.hbase.address}, gateway {thrift.host}:{thrift.port}; {_by(source(file))}")
    return config


def _by(place: str) -> str:
    return f"configuration {place}" if os.sep in place else place
