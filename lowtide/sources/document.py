"""Settings as text: YAML and JSON in which each key stands once, from files in UTF-8.

Of a key that is given twice both parsers take the last one, without a word: a table's settings in the first of two
``tables`` would be gone, and the table be acted on by the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from yaml.parser import ParserError
from yaml.scanner import ScannerError

from lowtide.errors import UsageError


class RepeatedKeysError(ValueError):
    """Keys that stand twice in one mapping; ``found`` has a sentence for each of them, by its place."""

    def __init__(self, found: dict[str, str]) -> None:
        super().__init__("; ".join(f"{place}: {text}" for place, text in found.items()))
        self.found = found


def read_text(file: Path) -> str:
    """What *file* holds, in UTF-8 whatever the machine's own encoding is.

    Raises:
        UsageError: it is in another encoding; says where that shows first.
        OSError: it cannot be read.
    """
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1} (line {error.object[: error.start].count(10) + 1})"
        fact = f"{file} is not in UTF-8: {at} is 0x{error.object[error.start]:02x}"
        raise UsageError(fact, "save it as UTF-8") from error


def from_yaml(text: str) -> Any:
    """The one document in *text*; None where there is none. Merged keys (``<<``) are overridden as ever.

    Raises:
        RepeatedKeysError: a key stands twice in one mapping.
        yaml.YAMLError: it is no YAML.
    """
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        # Before anything is made of it: merging changes the nodes, and leaves keys in them twice.
        if found := dict(_repeated(loader, root, (), set())):
            raise RepeatedKeysError(found)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def what_is_wrong(error: yaml.YAMLError) -> str:
    """Where, and what as far as that shows nothing of the file: what stands there may be a secret."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:  # characters that no YAML has, named by number and place
        return str(error)
    # Others name a tag or an alias: so a password is read that begins with ! or *.
    problem = str(error.problem) if isinstance(error, ScannerError | ParserError) else "tag"
    return f"line {mark.line + 1}, column {mark.column + 1}" + ("" if "tag" in problem else f": {problem}")


def from_json(text: str) -> Any:
    """What *text* holds.

    Raises:
        RepeatedKeysError: a key stands twice in one object.
        ValueError: it is no JSON.
    """
    return json.loads(text, object_pairs_hook=_once)


def _repeated(
    loader: yaml.SafeLoader, node: yaml.Node, path: tuple[str, ...], seen: set[int]
) -> Iterator[tuple[str, str]]:
    """The keys below *node* that stand twice, and where; *seen*: nodes that were looked at, since an alias may lead
    back to them.
    """
    if id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(id(node))
    if not isinstance(node, yaml.MappingNode):
        for at, each in enumerate(node.value):
            yield from _repeated(loader, each, (*path, str(at)), seen)
        return
    lines: dict[Any, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            yield from _repeated(loader, value, (*path, "<<"), seen)
            continue
        name = loader.construct_object(key)  # yes and true are one key
        line, place = key.start_mark.line + 1, (*path, str(key.value))
        if name in lines:
            yield ".".join(place), f"stands in line {lines[name]} and again in line {line}; {_REMEDY}"
        lines[name] = line
        yield from _repeated(loader, value, place, seen)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if found := {name: f"stands twice; {_REMEDY}" for name in names if names.count(name) > 1}:
        raise RepeatedKeysError(found)
    return dict(pairs)


_REMEDY = "only the last would count: make one of them"
