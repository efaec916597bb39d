"""Which of Lowtide's lines the scenes of a plan run: a scene cannot tell of what is broken in others."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

from coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
#: The folders whose lines are looked at. What a job computes in Spark is made of expressions, which its driver builds.
_OURS = ("lowtide", "spark_apps")
#: Stands for what comes between scenes, before them and after them.
BETWEEN = "between"


class Lines:
    """Looks while it is entered, in all threads of this process. What was run before, as when modules were loaded, it
    knows nothing of.
    """

    def __init__(self) -> None:
        ours = [str(ROOT / folder / "*") for folder in _OURS]
        self._coverage = Coverage(data_file=None, config_file=False, include=ours, messages=False)

    def __enter__(self) -> Self:
        self._coverage.start()
        self.within(None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._coverage.stop()

    def within(self, scene: int | None) -> None:
        """From here on it is this scene of the plan; None: none."""
        self._coverage.switch_context(BETWEEN if scene is None else str(scene))

    def found(self) -> dict[str, dict[str, list[int]]]:
        """By scene and file the numbers of the lines that were run, the first being 1."""
        data = self._coverage.get_data()
        found: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for file in data.measured_files():
            for line, scenes in sorted(data.contexts_by_lineno(file).items()):
                for scene in scenes:
                    found[scene].setdefault(str(Path(file).relative_to(ROOT)), []).append(line)
        return dict(found)
