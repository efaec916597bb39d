"""A bench: a copy of the code in which mutations are tried one after another, with what their tests need kept warm."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from breaking.catalogue import Mutation, folder
from breaking.connector import Connector
from breaking.noted import FILE
from breaking.verdict import BROKEN, ELSEWHERE, NOTICED, Outcome, Verdict
from breaking.warm import ROOT, WarmDriver, WarmStore

#: How long the tests of one mutation may take; those of the unbroken code as long each.
_SECONDS = 300
#: Why a test that is skipped does not pass.
LEFT_OUT = "is left out"
_NOT_COPIED = shutil.ignore_patterns(".*", "target", "__pycache__", "*.egg-info", "dist", "build", "spark-warehouse")


class Bench:
    """One copy of the code; used by one thread at a time. Store and driver are started when a test first needs them."""

    def __init__(
        self,
        folder: Path,
        *,
        judge: bool = False,
        first: bool = False,
        told: Mapping[str, str] | None = None,
    ) -> None:
        """*first*: of a mutation's tests the first that fails says enough. *told*: what their environment says."""
        self._folder = folder
        self._first = first
        self.told = dict(told or {})
        self._judge = judge
        #: How long the tests of one mutation may take. The verifier looks before and after each job: that takes its
        #: time.
        self.seconds: float = _SECONDS * (4 if judge else 1)
        self._copy = folder / "lowtide"
        shutil.copytree(ROOT, self._copy, ignore=_NOT_COPIED, symlinks=True)
        built = ROOT / "connector/target"
        for name in ("classes", "test-classes"):
            shutil.copytree(built / name, self._copy / "connector/target" / name)
        shutil.copy(built / "lowtide-connector.jar", self._copy / "connector/target")
        (self._copy / "connector/target/lib").symlink_to(built / "lib")
        (self._copy / "embedded/target").symlink_to(ROOT / "embedded/target")
        self._connector = Connector(self._copy)
        self._over = False
        self._second = 0

    @cached_property
    def _store(self) -> WarmStore:
        return WarmStore(Path(mkdtemp(prefix="store-", dir=self._folder)))

    @cached_property
    def _driver(self) -> WarmDriver:
        return WarmDriver(Path(mkdtemp(prefix="driver-", dir=self._folder)))

    @cached_property
    def _forker(self) -> subprocess.Popen[str]:
        file = Path(__file__).with_name("forker.py")
        pipe = subprocess.PIPE
        # Not the copy, which would be imported from: each fork says where it looks.
        return subprocess.Popen([sys.executable, "-P", file], stdin=pipe, stdout=pipe, text=True, cwd=self._folder)

    def interrupt(self) -> None:
        """End the tests that run now, without waiting for them, and run none after."""
        self._over = True
        if "_forker" in vars(self):
            self._forker.terminate()

    def close(self) -> None:
        """End what was started."""
        if "_forker" in vars(self):
            self._forker.communicate()
        self._cool()

    def _cool(self) -> None:
        """End store and driver: what needs them next gets new ones."""
        for name in ("_driver", "_store"):
            if name in vars(self):
                vars(self).pop(name).close()

    def unbroken(self, tests: list[str]) -> dict[str, str]:
        """Run tests, all of one folder, on the code as it is: those that do not pass, each with the reason."""
        outcome = self._run(tuple(tests), self.seconds * len(tests), all_of_them=True)
        passed = {name for n in outcome.noted if n["phase"] == "passed" for name in _names(n["test"])}
        failed = {n["test"]: f"{n['kind']}: {n['text']}" for n in outcome.failures}
        skipped = {n["test"]: LEFT_OUT for n in outcome.noted if n["phase"] == "skipped"}
        absent = {test: f"did not run: {outcome.output[-2000:]}" for test in tests if test not in passed}
        wrong = {**absent, **skipped, **failed}
        return {test: " ".join(reason.split()) for test, reason in wrong.items()}

    def judged(self, tests: tuple[str, ...]) -> set[tuple[str, str]]:
        """What the verifier says of jobs of the code as it is: tests that play Omid's part by halves leave what it
        rightly names.
        """
        return self._run(tests, self.seconds * len(tests)).judged

    def tried(self, mutation: Mutation) -> Verdict:
        """Break the code, run the mutation's tests, have the code whole again.

        What fails elsewhere may be the store's or the driver's doing: it is tried once more, with new ones. What is not
        noticed stays so. Where the verifier is asked, it may fail anywhere.
        """
        verdict = self._tried_once(mutation)
        if verdict.word == ELSEWHERE and not self._over and not self._judge:
            self._cool()
            verdict = self._tried_once(mutation)
        return verdict

    def _tried_once(self, mutation: Mutation) -> Verdict:
        file = self._copy / mutation.file
        whole = file.read_text()
        try:
            self._write(file, mutation.broken(whole))
            return self._tried_in_java(mutation, file) if mutation.in_java else self._verdict(mutation)
        except ValueError as error:
            return Verdict(BROKEN, output=str(error))
        finally:
            self._write(file, whole)

    def _write(self, file: Path, text: str) -> None:
        """Each text has a second of its own: by that and its size Python knows what it has compiled of it."""
        file.write_text(text)
        self._second = max(self._second + 1, int(time.time()))
        os.utime(file, (self._second, self._second))

    def _tried_in_java(self, mutation: Mutation, file: Path) -> Verdict:
        classes = self._connector.compiled(file, self._folder / "compiled")
        if "store" in mutation.folders:
            verdict = self._in_the_warm_driver(mutation, classes)
            # Where it was not noticed, the driver may have had no use for the new body: it then gets one of its own.
            if verdict is not None and verdict.word == NOTICED:
                return verdict
        try:
            self._connector.put(classes)
            return self._verdict(mutation, warm_driver=False)
        finally:
            self._connector.restore()

    def _in_the_warm_driver(self, mutation: Mutation, classes: dict[str, Path]) -> Verdict | None:
        """What the tests say to a driver whose classes were given other bodies; None where it does not take them."""
        driver = self._driver
        swapped = driver.redefine(classes)
        try:
            return self._verdict(mutation) if swapped else None
        finally:
            # Those that could not be given another body cannot be given their own, and have it.
            if not driver.redefine(self._connector.whole(classes)) and swapped:
                self._cool()

    def _verdict(self, mutation: Mutation, *, warm_driver: bool = True) -> Verdict:
        outcome = self._run(mutation.tests, self.seconds, warm_driver=warm_driver)
        verdict = Verdict.of(outcome, mutation.fails)
        verdict.judged = outcome.judged
        return verdict

    def _run(
        self, tests: tuple[str, ...], seconds: float, *, warm_driver: bool = True, all_of_them: bool = False
    ) -> Outcome:
        [place] = {folder(test) for test in tests}
        if place == "connector":
            return Outcome(*self._connector.test(tests, seconds))
        first = ["-x"] if self._first and not all_of_them else []
        noted, output = self._folder / "noted", self._folder / "output"
        noted.unlink(missing_ok=True)
        with self._environment(place, warm_driver) as environment:
            request = {
                "arguments": ["-q", "-p", "no:cacheprovider", *self._plugins, *first, "--tb=short", *tests],
                "environment": {**environment, FILE: str(noted)},
                "paths": [str(self._copy / name) for name in ("", "spark_apps", "plugins", "tools")],
                "folder": str(self._copy),
                "output": str(output),
                "seconds": seconds,
            }
            code, at = self._asked(request), time.monotonic()
            if code is None or code < 0:
                self._cool()  # whatever did not end by itself may be at work there still
        lines = noted.read_text().splitlines() if noted.exists() else []
        return Outcome(code, output.read_text(errors="replace"), [json.loads(line) for line in lines], at)

    @property
    def _plugins(self) -> list[str]:
        judged = ["-p", "breaking.judged"] if self._judge else []
        return ["-p", "breaking.noted", *judged]

    def _asked(self, request: dict[str, Any]) -> int | None:
        if self._over:
            return None
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(json.dumps(request) + "\n")
        self._forker.stdin.flush()
        answer: int | None = json.loads(self._forker.stdout.readline() or "null")
        return answer

    @contextmanager
    def _environment(self, place: str, warm_driver: bool) -> Iterator[dict[str, str]]:
        """What tests of a folder must be told; the store is clean when they begin and when they are over."""
        environment = {"TMPDIR": os.environ.get("TMPDIR", "/tmp"), **self.told}
        if place in ("store", "spark") and warm_driver:
            environment |= self._driver.environment
        if place != "store":
            yield environment
            return
        try:
            yield environment | self._store.environment
        finally:
            if "_store" in vars(self):
                self._store.clean()


def _names(test: str) -> set[str]:
    """What a test may be called by: itself, without its parameters, its file."""
    bare = re.sub(r"\[.*", "", test, flags=re.DOTALL)
    return {test, bare, bare.partition("::")[0]}
