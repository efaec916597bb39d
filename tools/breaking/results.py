"""What became of mutations over several runs: lines of JSON in a file, which the next run goes on from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from breaking.verdict import NOTICED


class Results:
    """One line a mutation, added when it was tried; of one that was tried twice the last counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self._words: dict[str, tuple[str, float]] = {}
        for line in lines:
            told = json.loads(line)
            self._words[told["name"]] = told["word"], told["seconds"]

    def __contains__(self, name: str) -> bool:
        return name in self._words

    def add(self, name: str, word: str, seconds: float) -> None:
        """A mutation was tried."""
        self._words[name] = word, round(seconds, 1)
        with self._file.open("a") as lines:
            lines.write(json.dumps({"name": name, "word": word, "seconds": round(seconds, 1)}) + "\n")

    def table(self) -> str:
        """Each mutation with what became of it, and the share of those that were noticed."""
        lines = [f"{name:6} {seconds:5.0f} s  {word}" for name, (word, seconds) in sorted(self._words.items())]
        counts = Counter(word for word, _ in self._words.values())
        told = ", ".join(f"{number} {word.lower()}" for word, number in sorted(counts.items()))
        share = round(100 * counts[NOTICED] / max(1, len(self._words)))
        return "\n".join([*lines, f"{len(self._words)} in all: {told or 'none'}; {share} % noticed"])
