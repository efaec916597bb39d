"""Names in the JVM, each looked up once."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember


class Remembered:
    """A package of the JVM, or a class, that keeps what was found in it: to py4j each look for a name is a call of the
    JVM, and a run looks for a few names thousands of times. What is found stays with this process's JVM.

    Of a package the classes are remembered, of a class its methods; any other name is looked up each time.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, JavaClass):
            found = Remembered(found)
        if isinstance(found, Remembered | JavaMember):
            setattr(self, name, found)
        return found
