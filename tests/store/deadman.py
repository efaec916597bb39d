"""The dead man's switch: a run of a job in this process dies at one of its effects, and nothing of it takes effect
after that.

What SIGKILL leaves behind is what is left here: after the death every effect of the run raises :class:`Killed`, in
``finally`` and in the threads that it started too. Effects are caught at the lowest *seams*, which everything passes
that changes the store or the sideline:

``gateway``    calls of the Thrift gateway that write, whoever answers them: itself, or HBase's client in the driver
``connector``  a DataFrame of mutations, written by :meth:`lowtide_spark.frames.store.Store.write`
``hbase``      what :class:`lowtide.connector.Admin` asks of HBase: tables, snapshots, scratch folders, compactions
``rows``       writes of single rows by the driver: ``lowtide.connector.Rows``
``files``      Spark's files, and what is done to a file system of Hadoop's

A call that is in no list of reads counts as an effect. ``test_deadman.py`` keeps the lists complete.

Who asks for it is told of ``read`` too: whenever a DataFrame is worked out. That changes nothing, and has no number.
Nor has ``turn``, where a write of a run that keeps to a rate waits for its turn.

:func:`run` runs one life and tells its effects. Its *watch* is called before and after each, after one that failed too,
and may let the run die there (:class:`Die`), also with a part of a divisible effect applied. What it does itself is
nobody's effect, so that it may look at the store, or run another job.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Methods of the gateway that change something, the one among them that only jobs have; and those that do not.
GATEWAY_EFFECTS = _words(
    "enableTable disableTable compact majorCompact createTable deleteTable mutateRow mutateRowTs mutateRows "
    "mutateRowsTs atomicIncrement "
    "deleteAll deleteAllTs deleteAllRow deleteAllRowTs increment incrementRows append checkAndPut"
) | {"checkAndPutAll"}
GATEWAY_READS = _words(
    "isTableEnabled getTableNames getColumnDescriptors getTableRegions get getVer getVerTs getRow getRowWithColumns "
    "getRowTs getRowWithColumnsTs getRows getRowsWithColumns getRowsTs getRowsWithColumnsTs scannerOpenWithScan "
    "scannerOpen scannerOpenWithStop scannerOpenWithPrefix scannerOpenTs scannerOpenWithStopTs scannerGet "
    "scannerGetList scannerClose getRowOrBefore getRegionInfo"
)
#: The same of the connector's classes that Python calls. What a call of ``Rows.work`` does its operations say, and
#: what one of ``GatewayCalls`` does the name of the gateway's call.
JAVA_EFFECTS = {
    "Admin": _words(
        "createSnapshot dropSnapshot flush createTable giveBloomAndCache majorCompact compactRegions scratchDir "
        "dropScratchDir sweepScratchDirs"
    ),
    "Rows": frozenset({"work"}),
    "GatewayCalls": frozenset({"call"}),
    "Cluster": frozenset(),
    "Catalog": frozenset(),
    "Gates": frozenset(),
}
JAVA_READS = {
    "Admin": frozenset({"takeReport", "durability", "stated", "statedOf", "opened", "attribute"}),
    "Rows": frozenset(),
    "GatewayCalls": frozenset(),
    "Cluster": frozenset({"look", "principal", "lacking"}),
    "Catalog": frozenset({"look"}),
    "Gates": frozenset({"queue", "waited"}),
    # Asked before there is a session, and of each.
    "Contract": frozenset({"number"}),
}
#: Of a file system of Hadoop's and its streams.
FILE_EFFECTS = _words(
    "append appendFile completeLocalOutput concat copyFromLocalFile create createFile createMultipartUploader "
    "createNewFile createNonRecursive createSnapshot createSymlink delete deleteOnExit deleteSnapshot mkdirs "
    "modifyAclEntries moveFromLocalFile primitiveCreate primitiveMkdir rename renameSnapshot setAcl setOwner "
    "setPermission setReplication setTimes setXAttr truncate"
)
FILE_READS = frozenset({"exists", "listStatus", "open", "getFileStatus", "getUri"})
STREAM_EFFECTS = frozenset({"write", "close"})
#: Of Spark's writer of DataFrames.
WRITER_EFFECTS = _words("csv insertInto jdbc json orc parquet save saveAsTable text xml")
WRITER_SETTINGS = _words("bucketBy clusterBy format mode option options partitionBy sortBy")

#: By which Python has Spark work a DataFrame out.
SPARK_READS = _words("collectToPython count isEmpty toPythonIterator")
#: And once for good.
SPARK_FREEZES = frozenset({"localCheckpoint"})

#: For so many seconds mutations of many rows wait for their turn, of which who asks is told meanwhile: longer than what
#: happens then takes, and short enough for what was read before it to count as fresh still. Rows wait after it.
TURN, ROWS_TURN = 6.0, 0.2
_CONNECTOR = "z:lowtide.connector."
#: What others have done by these is a step of theirs.
_EDGES = (
    "lowtide.store.gateway",
    "lowtide.store.direct",
    "lowtide_spark.frames.folders",
    "lowtide_spark.frames.computed",
)


class Killed(BaseException):
    """The run ended here: no handler of errors catches it."""

    def __init__(self, life: Life[Any]) -> None:
        super().__init__(f"killed at {life.effects[-1] if life.effects else 'its beginning'}")
        self.life = life


class Moment(StrEnum):
    """Where a run can die."""

    BEFORE = "before"
    PART = "in part"
    AFTER = "after"
    FAILED = "failed"
    """After an effect that raised: it may have been applied all the same. Nobody dies there."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a run: which call at which seam, on what, and the step of Lowtide's that made it
    (``state.begin_removal``). One that has no number is a read, or has Spark
    work out something once for good (the seam ``freeze``).
    """

    number: int
    seam: str
    name: str
    on: str
    step: str
    divisible: bool

    def __str__(self) -> str:
        numbered = f"effect {self.number}" if self.number else "no effect"
        return f"{numbered}, {self.seam} {self.name} on {self.on}, by {self.step}"


@dataclass(frozen=True, slots=True)
class Die:
    """The run dies here. With a *share*, before an effect that is divisible: so much of it is applied, a choice that
    *seed* makes.
    """

    share: float | None = None
    seed: int = 0


Watch = Callable[[Effect, Moment], Die | None]


@dataclass(frozen=True, slots=True)
class Cut:
    """Die at an effect; a :data:`Watch`."""

    number: int
    moment: Moment = Moment.BEFORE
    share: float = 0.5
    seed: int = 0

    def __call__(self, effect: Effect, moment: Moment) -> Die | None:
        if effect.number != self.number or (moment is Moment.AFTER) != (self.moment is Moment.AFTER):
            return None
        return Die(self.share, self.seed) if self.moment is Moment.PART else Die()

    def __str__(self) -> str:
        told = f" ({self.share:.2f}, {self.seed})" if self.moment is Moment.PART else ""
        return f"{self.moment} effect {self.number}{told}"


@dataclass
class Life(Generic[R]):
    """A run from its beginning to its end or its death."""

    watch: Watch | None = None
    #: Whether it is watched at reads too.
    reads: bool = False
    #: The first write to one of these tables is yet to wait for its turn.
    turns: Collection[str] = ()
    effects: list[Effect] = field(default_factory=list)
    killed: bool = False
    #: Whether it returned: what its threads do then is nobody's effect.
    over: bool = False
    #: Of an effect that was applied in part: how many of its pieces were, and how many there were.
    applied: tuple[int, int] | None = None
    #: What the run returned; None of one that was killed.
    result: R | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def steps(self) -> list[str]:
        """The steps, one an effect."""
        return [effect.step for effect in self.effects]

    def named(self, step: str, name: str | None = None) -> list[Effect]:
        """The effects of a step."""
        return [e for e in self.effects if e.step == step and name in (None, e.name)]

    def begin(self, seam: str, name: str, on: str, part: Callable[[Die], tuple[int, int]] | None) -> Effect:
        with self._lock:
            if self.killed:
                raise Killed(self)
            effect = Effect(len(self.effects) + 1, seam, name, on, _step(), part is not None)
            self.effects.append(effect)
        die = self._told(effect, Moment.BEFORE)
        if die is not None:
            if die.share is not None and part is not None:
                try:
                    with _standing(_Mode.INSIDE):
                        self.applied = part(die)
                except Exception:  # what failed here nobody hears of: the run is dead
                    traceback.print_exc()
            self._die()
        return effect

    def wait(self, name: str, on: str) -> None:
        """It waits for its turn. It does not die there: the write that waits is under way."""
        self._told(Effect(0, "turn", name, on, _step(), False), Moment.BEFORE)

    def look(self, seam: str, name: str, read: Callable[[], T]) -> T:
        """A read, before and after which it can die too."""
        effect = Effect(0, seam, name, "", _step(), False)
        if self._told(effect, Moment.BEFORE) is not None:
            self._die()
        result = read()
        self.done(effect)
        return result

    def done(self, effect: Effect) -> None:
        if self.killed or self._told(effect, Moment.AFTER) is not None:
            self._die()

    def failed(self, effect: Effect) -> None:
        """An effect raised, whether or not it took place."""
        if not self.killed:
            self._told(effect, Moment.FAILED)

    def _told(self, effect: Effect, moment: Moment) -> Die | None:
        if self.watch is None:
            return None
        with _standing(None):
            return self.watch(effect, moment)

    def _die(self) -> None:
        self.killed = True
        raise Killed(self)


def run(
    work: Callable[[], T], watch: Watch | None = None, *, reads: bool = False, turns: Collection[str] = ()
) -> Life[T]:
    """Run *work* and tell what it did; when it returns, the run is over or dead, with all its threads.

    With *reads* the watch is called at reads too. Its first write that keeps to a rate, of mutations to one of the
    tables *turns*, or of rows where there are any, finds that somebody is before it, and the watch is called while it
    waits.
    """
    _install()
    life: Life[T] = Life(watch, reads, turns)
    with _standing(life):
        try:
            life.result = work()
        except Killed as death:
            if death.life is not life:
                raise
            # What generators do when they are thrown away they do as long as the run is known to be dead.
            traceback.clear_frames(death.__traceback__)
            del death
            gc.collect()
    life.over = True
    if life.killed:
        life.result = None
    return life


def cuts(effects: Sequence[Effect], chance: random.Random, *, every: bool, always: Sequence[Effect] = ()) -> list[Cut]:
    """Where to kill a run that has these effects.

    Between the end of an effect and the beginning of the next nothing changes: before each, and after the last, are all
    the states that a run leaves whose effects are whole. A divisible one is also cut in part.

    Args:
        effects: of an undisturbed run.
        chance: draws.
        every: all of them; else before one effect of each seam, one effect of each divisible name in part, and after
            the last.
        always: effects before which the run dies first, whatever is drawn; their seams need no other.
    """
    last = Cut(effects[-1].number, Moment.AFTER)
    others = [e for e in effects if e not in always]
    parts = [e for e in effects if e.divisible]
    if not every:
        seams = {e.seam for e in others} - {e.seam for e in always}
        others = [chance.choice([e for e in others if e.seam == seam]) for seam in sorted(seams)]
        parts = [chance.choice([e for e in parts if e.name == name]) for name in sorted({e.name for e in parts})]
    in_part = [Cut(e.number, Moment.PART, chance.uniform(0.1, 0.9), chance.getrandbits(32)) for e in parts]
    return [*(Cut(e.number) for e in (*always, *others)), *in_part, last]


# -- whose effect it is


class _Mode(StrEnum):
    INSIDE = "inside an effect"


def _stack() -> list[Any]:
    thread = threading.current_thread()
    if not hasattr(thread, "lives"):
        thread.lives = []  # type: ignore[attr-defined]
    found: list[Any] = thread.lives  # type: ignore[attr-defined]
    return found


@contextmanager
def _standing(on: Life[Any] | _Mode | None) -> Iterator[None]:
    """What this thread does meanwhile is part of a life, of an effect of it, or nobody's."""
    stack = _stack()
    stack.append(on)
    try:
        yield
    finally:
        stack.pop()


def _life() -> Life[Any] | None:
    """The life that the thread is part of now, the innermost one."""
    for on in reversed(_stack()):
        if on is not _Mode.INSIDE:
            return on  # type: ignore[no-any-return]
    return None


def _through(
    seam: str, name: str, on: str, effect: Callable[[], T], part: Callable[[Die], tuple[int, int]] | None = None
) -> T:
    life = _life()
    if life is None or (life.over and not life.killed):
        return effect()
    if life.killed:
        raise Killed(life)
    if _stack()[-1] is _Mode.INSIDE:
        return effect()
    begun = life.begin(seam, name, on, part)
    try:
        with _standing(_Mode.INSIDE):
            result = effect()
    except Exception:
        life.failed(begun)
        raise
    life.done(begun)
    return result


def _looked(seam: str, name: str, read: Callable[[], T]) -> T:
    life = _life()
    if life is None or not life.reads or life.over or life.killed or _stack()[-1] is _Mode.INSIDE:
        return read()
    return life.look(seam, name, read)


def _step() -> str:
    """The function of Lowtide's that asked for the effect, helpers left out."""
    frame = sys._getframe(1)
    found = "unknown"
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.partition(".")[0] in ("lowtide", "lowtide_spark"):
            found = f"{module.rpartition('.')[2]}.{function}"
            helper = function.startswith(("_", "<")) and module.startswith(
                ("lowtide.store.", "lowtide_spark.frames.connector")
            )
            if module not in _EDGES and not helper:
                return found
        frame = frame.f_back  # type: ignore[assignment]
    return found


# -- seams


@cache
def _install() -> None:
    """Put the seams in place, once and for good: threads of a dead run are to find them for as long as they live."""
    _threads()
    _gateway()
    _java()
    _spark()


def _threads() -> None:
    start = threading.Thread.start

    def started(self: threading.Thread) -> None:
        life = _life()
        if life is not None:
            self.lives = [life]  # type: ignore[attr-defined]
            work = self.run

            def mortal() -> None:
                with suppress(Killed):
                    work()

            self.run = mortal  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = started  # type: ignore[method-assign]


def _gateway() -> None:
    from thriftpy2.thrift import TClient

    request = TClient._req

    def requested(self: Any, api: str, *arguments: Any, **named: Any) -> Any:
        def send() -> Any:
            return request(self, api, *arguments, **named)

        return send() if api in GATEWAY_READS else _through("gateway", api, _target(arguments), send)

    TClient._req = requested


def _target(arguments: Sequence[Any]) -> str:
    """The table and the row, or rows, of a call of the gateway."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(
                text(
                    each[0]
                    if isinstance(each, list)
                    else each.get("row")
                    if isinstance(each, dict)
                    else getattr(each, "row", None)
                )
                for each in value
            )
        return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)

    return " ".join(text(value) for value in arguments[:2])


def _java() -> None:
    from py4j.java_gateway import JavaMember

    ask = JavaMember.__call__

    def asked(self: Any, *arguments: Any) -> Any:
        def send() -> Any:
            return ask(self, *arguments)

        if self.container is None:
            if not self.target_id.startswith(_CONNECTOR):
                return send()
            return _static(self.target_id.removeprefix(_CONNECTOR), self.name, arguments, ask, self, send)
        if self.name in FILE_EFFECTS | STREAM_EFFECTS and _life() is not None:
            return _file(self, arguments, ask, send)
        if self.name in SPARK_READS:
            return _looked("read", self.name, send)
        if self.name in SPARK_FREEZES and arguments[0] is True:  # else it is worked out later, by a read
            return _looked("freeze", self.name, send)
        return send()

    JavaMember.__call__ = asked


def _static(
    owner: str, name: str, arguments: Sequence[Any], ask: Callable[..., Any], member: Any, send: Callable[[], Any]
) -> Any:
    if (owner, name) == ("Gates", "queue"):
        return _queued(arguments, ask, member, send)
    if name in JAVA_READS.get(owner, ()):
        return send()
    if owner == "GatewayCalls":
        api, told = arguments[1], json.loads(arguments[2])
        if api in GATEWAY_READS:
            return send()

        def some(die: Die) -> tuple[int, int]:
            chosen = _chosen(told[1], die)
            ask(member, arguments[0], api, json.dumps([told[0], chosen]))
            return len(chosen), len(told[1])

        return _through("gateway", api, _target(told), send, some if api == "checkAndPutAll" else None)
    if owner != "Rows":
        return _through("hbase", name, " ".join(str(a) for a in arguments[1:]), send)
    operations = json.loads(arguments[2])
    writes = [o for o in operations if o[0] != "read"]
    if not writes:
        return send()

    def part(die: Die) -> tuple[int, int]:
        chosen = _chosen(writes, die)
        ask(member, arguments[0], arguments[1], json.dumps(chosen))
        return len(chosen), len(writes)

    return _through("rows", name, " ".join(sorted({f"{o[0]} {o[1]}" for o in writes})), send, part)


def _queued(arguments: Sequence[Any], ask: Callable[..., Any], member: Any, send: Callable[[], Any]) -> Any:
    """What the driver writes itself asks for its turn: nothing else of it is under way then."""
    life = _life()
    if life is not None and life.turns and arguments[0].endswith("/writes") and _stack()[-1] is not _Mode.INSIDE:
        life.turns = ()
        life.wait("queue", "rows")
        ask(member, arguments[0], int(ROWS_TURN * 10**9))
    return send()


def _in_turn(life: Life[Any], store: Any, table: str, write: Callable[[], Any]) -> Any:
    """Mutations of many rows are written when somebody else has had his turn, and the watch is told while they wait."""
    life.turns = ()
    waited = store.pace()["waited"]["writes"]
    store._await("writes", int(TURN * 10**9))
    found: list[Any] = []
    failed: list[Exception] = []

    def work() -> None:
        try:
            with _standing(_Mode.INSIDE):
                found.append(write())
        except Exception as error:  # whoever waits for it raises it
            failed.append(error)

    thread = threading.Thread(target=work, name="in-turn", daemon=True)
    thread.start()
    while thread.is_alive() and store.pace()["waited"]["writes"] == waited:
        time.sleep(0.02)
    if thread.is_alive():
        life.wait("write", table)
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _file(member: Any, arguments: Sequence[Any], ask: Callable[..., Any], send: Callable[[], Any]) -> Any:
    owner = member.container.getClass().getName()
    if not owner.startswith("org.apache.hadoop."):
        return send()
    on = str(arguments[0].toString()) if arguments and hasattr(arguments[0], "toString") else owner
    if member.name in FILE_EFFECTS and owner.endswith("FileSystem"):
        return _through("files", member.name, on, send)
    if member.name not in STREAM_EFFECTS or not owner.endswith("OutputStream"):
        return send()

    def part(die: Die) -> tuple[int, int]:
        """The beginning of the bytes; the stream is closed, since it may keep them to itself until then."""
        (content,) = arguments
        there = _pieces(len(content), die)
        ask(member, content[:there])
        member.container.close()
        return there, len(content)

    return _through("files", member.name, owner, send, part if member.name == "write" else None)


def _spark() -> None:
    from lowtide_spark.frames.store import Store
    from pyspark.sql import DataFrame, DataFrameWriter

    write = Store.write

    def written(self: Store, mutations: DataFrame, table: str, **named: Any) -> Any:
        def part(die: Die) -> tuple[int, int]:
            some, counted = _some(mutations, die)
            if counted[0]:
                write(self, some, table, **named)
            return counted

        def whole() -> Any:
            return write(self, mutations, table, **named)

        life = _life()
        if life is not None and table in life.turns and not life.killed and self.rate(table).writes:
            return _through("connector", "write", table, lambda: _in_turn(life, self, table, whole), part)
        return _through("connector", "write", table, whole, part)

    Store.write = written  # type: ignore[method-assign]
    for name in sorted(WRITER_EFFECTS & set(dir(DataFrameWriter))):  # Spark 3.5 has no xml
        setattr(DataFrameWriter, name, _saving(name, getattr(DataFrameWriter, name)))


def _saving(name: str, save: Callable[..., Any]) -> Callable[..., Any]:
    def saved(self: Any, *arguments: Any, **named: Any) -> Any:
        def part(die: Die) -> tuple[int, int]:
            """Some of the tasks have committed their files: those are there, and nothing says that it is not all."""
            some, counted = _some(self._df, die)
            if counted[0]:
                some.coalesce(1).write.mode("append").parquet(*arguments)
            return counted

        on = str(arguments[0]) if arguments else ""
        return _through("files", name, on, lambda: save(self, *arguments, **named), part if name == "parquet" else None)

    return saved


def _some(frame: Any, die: Die) -> tuple[Any, tuple[int, int]]:
    """The rows of *frame* that are applied, and how many of how many they are."""
    rows = sorted(frame.collect(), key=repr)
    chosen = _chosen(rows, die)
    return frame.sparkSession.createDataFrame(chosen, frame.schema), (len(chosen), len(rows))


def _chosen(pieces: Sequence[T], die: Die) -> list[T]:
    """Some of the *pieces*, in an order of the seed's: what is applied side by side may be cut off anywhere."""
    return random.Random(die.seed).sample(list(pieces), _pieces(len(pieces), die))


def _pieces(number: int, die: Die) -> int:
    """How many of so many pieces: neither none nor all, where that can be."""
    assert die.share is not None
    return 0 if number < 2 else min(max(round(die.share * number), 1), number - 1)
