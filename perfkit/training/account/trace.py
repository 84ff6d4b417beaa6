"""A window of TensorFlow's own profiler, as intervals of time.

The profiler writes events by thread. Those of operations are named ``NAME:TYPE``; an
executor's event around them says whose function they are part of. Those of the input
are nested, and carry the number that ``watch`` gave to their stage.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfkit.training.account.watch import STAGE

Floats = NDArray[np.float64]
_OPERATION = re.compile(r"^([\w.\-/>]+):([A-Za-z_]\w*)$")
# What the other events are, by their names and by how these begin.
_NAMED = {
    "ExecutorState::Process": "process",
    "IteratorGetNextOp::DoCompute": "wait",
    "FunctionRun": "function",
}
_BEGINNING = {
    "Iterator::": "stage",
    "InstantiatedCapturedFunction::": "captured",
    "EagerLocalExecute: __": "call",
}
# They contain others, wait for them, or are no work at all.
_NO_WORK = frozenset(
    {
        *("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"),
        *("If", "StatelessIf", "Case", "StatelessCase", "ReduceDataset"),
        *("IteratorGetNext", "IteratorGetNextSync", "_Recv", "_Send", "_HostRecv"),
        *("RemoteCall", "TPUPartitionedCall", "_Arg", "_Retval"),
    }
)
_PYTHON = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})
# Stages that hand on what other threads make: their own time is a wait.
_HANDS_ON = re.compile(r"Prefetch|Parallel|MapAndBatch|Root|Model|Options|FiniteTake")
# From the processor's memory to a GPU's.
_COPY = "MemcpyH2D"
# What XLA does before it can run anything: passes over a module, and their compilers.
_COMPILES = re.compile(
    r"Compiler|::Compile|^(?:dce|algsimp|cse|simplification|constant_folding|fusion|"
    r"layout-assignment|copy-insertion)$"
)
_COMPILING_THREAD = "tf_xla-cpu-codegen"
# Passes follow each other: what lies between two of them is compiling, too.
_BETWEEN_S = 0.3


@dataclass
class Intervals:
    """Begin, end and number of intervals of time, in seconds.

    Attributes:
        begin: On the clock of ``time.time``; ``end`` likewise.
        numbers: Of each, the index of its name.
    """

    begin: Floats
    end: Floats
    numbers: NDArray[np.int64]

    @classmethod
    def from_tuples(cls, tuples: list[tuple[float, float, int]]) -> "Intervals":
        """Make intervals from tuples of begin, end and number."""
        table = np.array(tuples or np.zeros((0, 3)), float).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2].astype(np.int64))

    def where(self, mask: NDArray[np.bool_]) -> "Intervals":
        """Return the intervals that a mask selects."""
        return Intervals(self.begin[mask], self.end[mask], self.numbers[mask])


class Grid:
    """A window cut wherever something begins or ends.

    Args:
        edges: Of the stretches that samples stand for.
        parts: What is active, one after the other.

    Attributes:
        spans: Seconds of each piece.
        active: How many of each are active in it.
    """

    def __init__(self, edges: Floats, parts: Sequence[Intervals]) -> None:
        cuts = [edges, *(part.begin for part in parts), *(part.end for part in parts)]
        self._edges = edges
        self._points = np.unique(np.clip(np.concatenate(cuts), edges[0], edges[-1]))
        self._middle = (self._points[1:] + self._points[:-1]) / 2
        self.spans = np.diff(self._points)
        self.active = [self._active(part) for part in parts]

    def over(self, values: Floats) -> Floats:
        """Return, for each piece, the value of the sample's stretch it lies in."""
        place = np.searchsorted(self._edges, self._middle) - 1
        place = np.clip(place, 0, len(values) - 1)
        return np.asarray(values[place], float)

    def stretches(
        self, mask: NDArray[np.bool_], within: NDArray[np.bool_] | None = None
    ) -> Floats:
        """Seconds of the stretch of pieces of a kind that each piece lies in, or 0.

        Args:
            mask: Which pieces are of the kind.
            within: Counts the seconds of these pieces of the stretch alone.
        """
        number = np.cumsum(np.concatenate([[True], mask[1:] != mask[:-1]])) - 1
        seconds = self.spans if within is None else self.spans * within
        totals = np.bincount(number, seconds)
        result: Floats = np.where(mask, totals[number], 0.0)
        return result

    def before(
        self, intervals: Intervals, seconds: Floats
    ) -> Iterator[tuple[int, float]]:
        """Add up seconds of pieces by the interval that begins next; -1 for none."""
        if not len(intervals.begin):
            yield -1, float(seconds.sum())
            return
        order = np.argsort(intervals.begin)
        following = np.searchsorted(intervals.begin[order], self._points[:-1])
        numbers = intervals.numbers[order][np.minimum(following, len(order) - 1)]
        sums = np.bincount(numbers, seconds)
        for number in np.flatnonzero(sums > 0):
            yield int(number), float(sums[number])

    def _active(self, intervals: Intervals) -> Floats:
        change = np.zeros(len(self._points))
        np.add.at(change, self._at(intervals.begin), 1.0)
        np.add.at(change, self._at(intervals.end), -1.0)
        return np.cumsum(change)[:-1]

    def _at(self, times: Floats) -> NDArray[np.int64]:
        clipped = np.clip(times, self._points[0], self._points[-1])
        return np.searchsorted(self._points, clipped).astype(np.int64)

    def within(self, begin: float, end: float) -> NDArray[np.bool_]:
        """Which pieces lie between two moments."""
        return np.asarray((begin <= self._middle) & (self._middle < end))

    def spent(self, intervals: Intervals, weight: Floats) -> Floats:
        """Return the weighted seconds of each interval."""
        sums = np.concatenate([[0.0], np.cumsum(weight * self.spans)])
        result: Floats = sums[self._at(intervals.end)] - sums[self._at(intervals.begin)]
        return result


def whole_steps(operations: Intervals, seconds: float) -> tuple[float, float] | None:
    """When the first and the last of several whole steps of a window begin.

    What the ends of a window cut off is in no trace, which hides long operations. From
    one operation to the same one again nothing is cut off.

    Args:
        operations: Of the steps.
        seconds: Of the window.

    Returns:
        The two moments, or None where they span less than half of the window.
    """
    order = np.lexsort((operations.begin, operations.numbers))
    begins = operations.begin[order]
    _, starts, counts = np.unique(
        operations.numbers[order], return_index=True, return_counts=True
    )
    first, last = begins[starts], begins[starts + counts - 1]
    suits = np.flatnonzero((counts > 1) & (last - first > seconds / 2))
    if not len(suits):
        return None
    # What is rare comes once a step, and what is frequent many times.
    rarest = suits[np.argmin(counts[suits])]
    return float(first[rarest]), float(last[rarest])


class Operation(NamedTuple):
    """An operation as a window names it.

    Attributes:
        kind: Its type, such as ``"MatMul"``.
        function: That it is part of; "" where nothing says so.
        of_input: Whether the input runs it.
    """

    name: str
    kind: str
    function: str = ""
    of_input: bool = False

    @property
    def is_python(self) -> bool:
        """Whether it runs Python."""
        return self.kind in _PYTHON


@dataclass
class Window:
    """What one window holds.

    Attributes:
        names: Of all operations.
        operations: Intervals of these on the processor; with a GPU it starts kernels.
        kernels: Intervals of these on a GPU.
        copies: To a GPU.
        stages: Of the numbers of stages, each where nothing below it is at work.
        waits: In which a step waits for its data.
        compiles: In which XLA compiles.
        counts: Elements that each stage gave out, by its number and its place in the
            pipeline: ``"…::Filter::Shuffle"`` gives its own to a filter.
    """

    names: list[Operation]
    operations: Intervals
    kernels: Intervals
    copies: Intervals
    stages: Intervals
    waits: Intervals
    compiles: Intervals
    counts: dict[tuple[int, str], int]


@dataclass
class _Reading:
    stages: list[tuple[float, float, int]] = field(default_factory=list)
    waits: list[tuple[float, float, int]] = field(default_factory=list)
    compiles: list[tuple[float, float, int]] = field(default_factory=list)
    copies: list[tuple[float, float, int]] = field(default_factory=list)
    counts: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    captured: set[int] = field(default_factory=set)
    functions: dict[int, str] = field(default_factory=dict)
    # What XLA made of which operation, by its module and its own name.
    modules: dict[tuple[str, str], str] = field(default_factory=dict)
    # Name, type, executor, begin, end, thread of the input.
    waiting: list[tuple[str, str, int, float, float, bool]] = field(
        default_factory=list
    )
    # Name, type, begin, end.
    kernels: list[tuple[str, str, float, float]] = field(default_factory=list)


def read(path: Path, started: float) -> Window:
    """Read a window's file.

    Args:
        path: The ``.xplane.pb``.
        started: When it began, where the file does not say.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    reading = _Reading()
    zero = _zero(space, started)
    for plane in space.planes:
        if plane.name == "/host:metadata":
            reading.modules.update(_modules(plane))
    for plane in space.planes:
        if "CPU" in plane.name:
            _host(plane, zero, reading)
        elif plane.name.startswith("/device:GPU"):
            _device(plane, zero, reading)
    names: dict[Operation, int] = {}
    operations = []
    for name, kind, owner, begin, end, of_input in reading.waiting:
        captured = of_input or owner in reading.captured
        operation = Operation(name, kind, reading.functions.get(owner, ""), captured)
        operations.append((begin, end, names.setdefault(operation, len(names))))
    # A kernel is of the operation that started it.
    started_by = {operation[:2]: number for operation, number in names.items()}
    kernels = []
    for name, kind, begin, end in reading.kernels:
        if (name, kind) not in started_by:
            operation = Operation(name, kind)
            started_by[name, kind] = names.setdefault(operation, len(names))
        kernels.append((begin, end, started_by[name, kind]))
    return Window(
        list(names),
        Intervals.from_tuples(operations),
        Intervals.from_tuples(kernels),
        Intervals.from_tuples(reading.copies),
        Intervals.from_tuples(reading.stages),
        Intervals.from_tuples(reading.waits),
        Intervals.from_tuples(_joined(reading.compiles)),
        dict(reading.counts),
    )


def _names(metadata: Any) -> dict[int, str]:
    return {number: entry.name for number, entry in metadata.items()}


def _zero(space: Any, started: float) -> float:
    """When the clock of the lines began."""
    for plane in space.planes:
        names = _names(plane.stat_metadata)
        for stat in plane.stats:
            if names.get(stat.metadata_id) == "profile_start_time":
                at = stat.uint64_value or stat.int64_value
                if at:
                    return float(at) / 1e9
    return started


def _began(line: Any, zero: float) -> float:
    """When a line began: some versions count from the start, some from 1970."""
    base = float(line.timestamp_ns / 1e9)
    return base + zero if base < 1e6 else base


def _span(event: Any, base: float) -> tuple[float, float]:
    end_ps = event.offset_ps + event.duration_ps
    return base + event.offset_ps / 1e12, base + end_ps / 1e12


def _modules(plane: Any) -> dict[tuple[str, str], str]:
    """Map each instruction of XLA's modules to the operation that it comes from."""
    from tensorflow.compiler.xla.service import hlo_pb2

    names = {}
    for metadata in plane.event_metadata.values():
        for stat in metadata.stats:
            proto = hlo_pb2.HloProto()
            try:
                proto.ParseFromString(stat.bytes_value)
            except Exception:
                # This stat holds no module.
                continue
            module = proto.hlo_module
            for computation in module.computations:
                for op in computation.instructions:
                    if op.metadata.op_name:
                        names[module.name, op.name] = op.metadata.op_name
    return names


def _joined(spans: list[tuple[float, float, int]]) -> list[tuple[float, float, int]]:
    """Join spans of compiling across the short pauses between passes."""
    joined: list[list[float]] = []
    for begin, end, _ in sorted(spans):
        if joined and begin - joined[-1][1] < _BETWEEN_S:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return [(begin, end, 0) for begin, end in joined]


def _host(plane: Any, zero: float, reading: _Reading) -> None:
    names, texts = _names(plane.event_metadata), _names(plane.stat_metadata)
    numbers = {text: number for number, text in texts.items()}
    stats = [numbers.get(name, -1) for name in ("id", "name", "hlo_op", "hlo_module")]
    compiled = "hlo_op" in numbers
    kinds = {n: _kind(name, compiled=compiled) for n, name in names.items()}
    for line in plane.lines:
        base = _began(line, zero)
        if line.name.startswith(_COMPILING_THREAD):
            reading.compiles += [(*_span(event, base), 0) for event in line.events]
            continue
        of_input = line.name.startswith("tf_data")
        tables = names, texts, kinds, stats
        _thread(line, base, tables, reading, of_input=of_input)


def _kind(name: str, *, compiled: bool) -> Any:
    """What an event is, by its name: an operation's name and type, or a word."""
    if match := _OPERATION.match(name):
        operation, kind = match.groups()
        if kind in _NO_WORK or operation in ("Iterator", "ExecutorState"):
            return None
        return operation, kind
    if name in _NAMED:
        return _NAMED[name]
    for beginning, kind in _BEGINNING.items():
        if name.startswith(beginning):
            return kind
    if _COMPILES.search(name):
        return "compile"
    # Those of XLA are named in no way of their own.
    return "thunk" if compiled and ":" not in name else None


def _thread(
    line: Any, base: float, tables: Any, reading: _Reading, *, of_input: bool
) -> None:
    names, texts, kinds, (id_stat, name_stat, hlo_stat, module_stat) = tables
    events = sorted(
        (event for event in line.events if kinds[event.metadata_id] is not None),
        key=lambda event: (event.offset_ps, -event.duration_ps),
    )
    owners: list[tuple[int, int]] = []
    nested: list[tuple[int, int, tuple[int, bool]]] = []
    thunks: list[tuple[int, int, str]] = []
    call = ("", -1)
    for event in events:
        kind, offset = kinds[event.metadata_id], event.offset_ps
        until = offset + event.duration_ps
        begin, end = base + offset / 1e12, base + until / 1e12
        if isinstance(kind, tuple) or kind == "process":
            while owners and owners[-1][0] < offset:
                owners.pop()
        if isinstance(kind, tuple):
            owner = owners[-1][1] if owners else 0
            reading.waiting.append((*kind, owner, begin, end, of_input))
        elif kind == "process":
            owners.append((until, _number(event, id_stat)))
        elif kind == "stage":
            path = names[event.metadata_id]
            stage = _stage(path, _text(event, name_stat, texts))
            reading.counts[stage[0], path] += 1
            nested.append((offset, until, stage))
        elif kind == "thunk":
            name = _text(event, hlo_stat, texts)
            module = _text(event, module_stat, texts)
            if name and module:
                operation = reading.modules.get((module, name), name)
                thunks.append((offset, until, operation))
        elif kind == "wait":
            reading.waits.append((begin, end, 0))
        elif kind == "captured":
            reading.captured.add(_number(event, id_stat))
        elif kind == "call":
            call = names[event.metadata_id], until
        elif kind == "function":
            if offset <= call[1]:
                reading.functions[_number(event, id_stat)] = _function(call[0])
        elif kind == "compile":
            reading.compiles.append((begin, end, 0))
    for first, last, (number, works) in _alone(nested):
        if number >= 0 and works:
            span = base + first / 1e12, base + last / 1e12
            reading.stages.append((*span, number))
    for first, last, operation in _alone(thunks):
        span = base + first / 1e12, base + last / 1e12
        reading.waiting.append((operation, "XLA", 0, *span, False))


def _alone(nested: list[Any]) -> Iterator[tuple[float, float, Any]]:
    """Yield the stretches of intervals without those of intervals nested in them.

    Args:
        nested: Begin, end and owner, sorted by begin, the longer first.
    """
    around: list[tuple[float, Any]] = []
    last = 0.0
    for begin, end, owner in [*nested, (math.inf, math.inf, None)]:
        while around and around[-1][0] <= begin:
            until, outer = around.pop()
            if last < until:
                yield last, until, outer
            last = max(last, until)
        if around and last < begin:
            yield last, begin, around[-1][1]
        around.append((end, owner))
        last = begin


def _stage(path: str, name: str) -> tuple[int, bool]:
    """The number of a stage, -1 for none, and whether its own time is work."""
    last = path.rpartition("::")[2].partition("#")[0]
    digits = name[len(STAGE) :] if name.startswith(STAGE) else ""
    return int(digits) if digits.isdecimal() else -1, not _HANDS_ON.match(last)


def _function(event: str) -> str:
    name = event.partition(": ")[2].removeprefix("__inference_")
    name = re.sub(r"^__(forward|backward)_", "", name)
    return re.sub(r"_\d+$", "", name)


def _number(event: Any, stat_id: int) -> int:
    for stat in event.stats:
        if stat.metadata_id == stat_id:
            return int(stat.int64_value or stat.uint64_value)
    return 0


def _text(event: Any, stat_id: int, texts: dict[int, str]) -> str:
    for stat in event.stats:
        if stat.metadata_id == stat_id:
            return texts.get(stat.ref_value, "") or str(stat.str_value)
    return ""


def _device(plane: Any, zero: float, reading: _Reading) -> None:
    """Kernels and copies of a GPU.

    A kernel carries the name of its operation, one that XLA made its instruction's.
    """
    events, texts = _names(plane.event_metadata), _names(plane.stat_metadata)
    numbers = {text: number for number, text in texts.items()}
    stats = [numbers.get(name, -1) for name in ("tf_op", "hlo_op", "hlo_module")]
    for line in plane.lines:
        if "stream" not in line.name.lower():
            continue
        base = _began(line, zero)
        for event in line.events:
            if events[event.metadata_id] == _COPY:
                reading.copies.append((*_span(event, base), 0))
                continue
            operation, hlo, module = (_text(event, stat, texts) for stat in stats)
            name, _, kind = operation.rpartition(":")
            if hlo and module:
                name, kind = reading.modules.get((module, hlo), hlo), "XLA"
            name = name or kind or events[event.metadata_id]
            reading.kernels.append((name, kind, *_span(event, base)))
