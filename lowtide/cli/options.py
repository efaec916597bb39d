"""Options that many commands have: each is explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path | None, typer.Option("--config", help="The configuration file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
