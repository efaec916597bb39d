"""Which connector driver and executors have: none, an older Lowtide's, another version's, or the one that this Python
goes with. Asked once, before anything is read: later it is told as something else, or not at all.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import Column
from pyspark.sql import functions as F

from lowtide.errors import UsageError

#: The number of what jar and Python have agreed on (contract/vectors.json): raised there, here and in Contract.java.
CONTRACT = 3
#: The connector's class that knows the jar's own number, and its method for it.
NUMBERED, NUMBER = "lowtide.connector.Contract", "number"
#: One that every connector has.
FIRST = "lowtide.connector.LowtideSource"
#: Where executors must find the connector.
JARS = (
    "Have its jars where spark.executor.extraClassPath says, on every node; an archive has lowtide-connector.jar and "
    "lib at its root, with no folder around them"
)
_TAKE = "the folder that `lowtide path connector` prints has this version's"
#: Of a jar that has a connector and no number, and of a class path without any.
_OLDER, _NONE = "older", ""


def check_driver(jvm: Any, class_path: str) -> None:
    """Refuse a driver without the connector, or with another version's; *class_path* is what its settings say.

    Raises:
        UsageError: says which it is, and what to do.
    """
    contract = jvm.lowtide.connector.Contract
    # To py4j a class that is not there is a package.
    if isinstance(contract, JavaClass):
        found = str(contract.number())
    else:
        found = _OLDER if isinstance(jvm.lowtide.connector.LowtideSource, JavaClass) else _NONE
    where = f"; spark.driver.extraClassPath is {class_path or 'not set'}"
    if found == _NONE:
        fact = f"this driver lacks the connector (no class {FIRST}){where}"
        raise UsageError(fact, f"Leave that out of spark.conf, or add lowtide-connector.jar and lib/* to it: {_TAKE}")
    _check_number("this driver", found, where, f"Put this version's in its place: {_TAKE}")


def asked_of_executors() -> Column:
    """What each task answers for :func:`check_executors`, evaluated where the task is."""
    number = F.reflect(F.lit(NUMBERED), F.lit(NUMBER))
    return F.when(_loads(NUMBERED), number).when(_loads(FIRST), F.lit(_OLDER)).otherwise(F.lit(_NONE))


def check_executors(answers: set[str], class_path: str) -> None:
    """Refuse executors without the connector, or with another version's than the driver.

    Args:
        answers: of :func:`asked_of_executors`.
        class_path: theirs, as settings say.

    Raises:
        UsageError: says which it is, and what to do.
    """
    if _NONE in answers:
        msg = f"executors lack the connector (ClassNotFoundException: {FIRST}); their class path is {class_path}"
        raise UsageError(msg, JARS)
    for found in sorted(answers):
        _check_number("executors", found, f"; their class path is {class_path}", f"Replace them: {_TAKE}. {JARS}")


def _check_number(who: str, found: str, where: str, remedy: str) -> None:
    if found != str(CONTRACT):
        jar = "is of an older Lowtide and names no contract" if found == _OLDER else f"has contract {found}"
        msg = f"the connector's jar of {who} {jar}, and this Lowtide goes with contract {CONTRACT}{where}"
        raise UsageError(msg, remedy)


def _loads(name: str) -> Column:
    return F.reflect(F.lit("org.apache.spark.util.Utils"), F.lit("classIsLoadable"), F.lit(name)) == "true"
