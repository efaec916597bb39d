"""Two looks at a store, before and after some runs: what the first one wrote, and what this one writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lowtide.errors import UsageError
from lowtide.run.private import write_private
from lowtide.values.clock import millis
from lowtide.verification.findings import Verification
from lowtide_spark.run.context import Run


@dataclass
class Look:
    """*earlier*: what the look before wrote (``--after``); empty: there was none. *writes*: whether this one is to be
    compared with by another (``--before``), by what it has *seen*.
    """

    earlier: dict[str, Any]
    writes: bool
    seen: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> Look:
        """As the run's options have it.

        Raises:
            UsageError: what is to be compared with cannot be read, or is none of ``--before``.
        """
        after, earlier = run.options.after, {}
        if after is not None:
            try:
                earlier = json.loads(after.read_text("utf-8"))
                earlier["tables"].items()
            except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
                fact = f"--after {after}: it cannot be read ({error})"
                raise UsageError(fact, "name a file that lowtide verify --before has written") from error
        return cls(earlier, run.options.before is not None)

    def write(self, run: Run, found: Verification) -> None:
        """Write what was seen, if it is to be written."""
        if run.options.before is not None:
            about = {"run": run.request.run, "at": millis(run.request.now), "low_watermark": found.low_watermark}
            write_private(run.options.before, json.dumps({**about, **self.seen}, indent=2) + "\n")
