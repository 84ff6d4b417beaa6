"""A window of TensorFlow's own profiler, as intervals of time.

The profiler writes events by thread. Those of operations are named ``NAME:TYPE``; an
executor's event around them says whose function they are part of. Those of the input
are nested, and carry the number that ``watch`` gave to their stage.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfkit.training.account.watch import STAGE

Floats = NDArray[np.float64]
_OPERATION = re.compile(r"^([\w.\-/>]+):([A-Za-z_]\w*)$")
# What the other events are, by their names. What XLA does before it can run anything is
# passes over a module, and their compilers.
_EVENT = re.compile(
    r"^(?:(?P<process>ExecutorState::Process$)|(?P<waits>IteratorGetNextOp::DoCompute$)"
    r"|(?P<function>FunctionRun$)|(?P<stage>Iterator::)"
    r"|(?P<captured>InstantiatedCapturedFunction::)|(?P<call>EagerLocalExecute: __))"
    r"|(?P<compiles>Compiler|::Compile|^(?:dce|algsimp|cse|simplification|"
    r"constant_folding|fusion|layout-assignment|copy-insertion)$)"
)
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
_COMPILING_THREAD = "tf_xla-cpu-codegen"
# Passes follow each other: what lies between two of them is compiling, too.
_BETWEEN_S = 0.3


@dataclass
class Intervals:
    """When intervals begin and end, in ``time.time``, and the number of each name."""

    begin: Floats
    end: Floats
    numbers: NDArray[np.int64]

    def lengths(self) -> Iterator[tuple[int, float]]:
        """Yield the number and the seconds of each."""
        return zip(self.numbers.tolist(), (self.end - self.begin).tolist(), strict=True)

    def where(self, mask: NDArray[np.bool_]) -> "Intervals":
        """Return the intervals that a mask selects."""
        return Intervals(self.begin[mask], self.end[mask], self.numbers[mask])


class Grid:
    """A window cut into pieces wherever something begins or ends.

    Args:
        edges: Of the stretches that samples stand for.
        parts: What is active, one after the other.

    Attributes:
        spans: Seconds of each piece.
        active: How many of each part are active in it.
    """

    def __init__(self, edges: Floats, parts: Sequence[Intervals]) -> None:
        cuts = [edges, *(part.begin for part in parts), *(part.end for part in parts)]
        self._edges, self.parts = edges, parts
        self.begin, self.end = float(edges[0]), float(edges[-1])
        self._points = np.unique(np.clip(np.concatenate(cuts), self.begin, self.end))
        self._middle = (self._points[1:] + self._points[:-1]) / 2
        self.spans = np.diff(self._points)
        self.active = [self._active(part) for part in parts]

    def over(self, values: Floats) -> Floats:
        """Return, for each piece, the value of the sample's stretch it lies in."""
        place = np.searchsorted(self._edges, self._middle) - 1
        return np.asarray(values[np.clip(place, 0, len(values) - 1)], float)

    def stretches(
        self, mask: NDArray[np.bool_], within: NDArray[np.bool_] | None = None
    ) -> Floats:
        """Seconds of the stretch of masked pieces that each piece lies in, or 0.

        ``within`` counts the seconds of some pieces of the stretch alone.
        """
        number = np.cumsum(np.concatenate([[True], mask[1:] != mask[:-1]])) - 1
        totals = np.bincount(
            number, self.spans if within is None else self.spans * within
        )
        return np.asarray(np.where(mask, totals[number], 0.0), float)

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
        yield from _sums(numbers, seconds)

    def shared(
        self, intervals: Intervals, weight: Floats, active: Floats
    ) -> Iterator[tuple[int, float]]:
        """Yield numbers and their weighted seconds; those active at a time share."""
        weighted = weight / np.maximum(active, 1) * self.spans
        until = np.concatenate([[0.0], np.cumsum(weighted)])
        spent = until[self._at(intervals.end)] - until[self._at(intervals.begin)]
        return _sums(intervals.numbers, spent)

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


def _sums(numbers: NDArray[np.int64], seconds: Floats) -> Iterator[tuple[int, float]]:
    """Yield each number that has any seconds, with these."""
    sums = np.bincount(numbers, seconds)
    return ((int(n), float(sums[n])) for n in np.flatnonzero(sums > 0))


def whole_steps(operations: Intervals, seconds: float) -> tuple[float, float] | None:
    """When the first and the last of several whole steps of a window begin.

    What the ends of a window cut off is in no trace, which hides long operations. From
    one operation to the same one again nothing is cut off. None where the two moments
    span less than half of the window's seconds.
    """
    order = np.lexsort((operations.begin, operations.numbers))
    begins, numbers = operations.begin[order], operations.numbers[order]
    _, starts, counts = np.unique(numbers, return_index=True, return_counts=True)
    first, last = begins[starts], begins[starts + counts - 1]
    suits = np.flatnonzero((counts > 1) & (last - first > seconds / 2))
    if not len(suits):
        return None
    # What is rare comes once a step, and what is frequent many times.
    rarest = suits[np.argmin(counts[suits])]
    return float(first[rarest]), float(last[rarest])


class Operation(NamedTuple):
    """An operation, its type, its function if known, and whether the input runs it."""

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
        operations: Of the names, on the processor; with a GPU it starts kernels.
        kernels: Of the names, on a GPU.
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


def read(path: Path, started: float) -> Window:
    """Read a window's ``.xplane.pb``; it ``started`` then if the file does not say."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    return _Reading(_zero(space, started)).read(space)


# Begin, end and number.
_Spans = list[tuple[float, float, int]]


@dataclass
class _Reading:
    """Reads a file; ``zero`` is when the clock of its lines began."""

    zero: float
    spans: dict[str, _Spans] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    captured: set[int] = field(default_factory=set)
    functions: dict[int, str] = field(default_factory=dict)
    # What XLA made of which operation, by its module and its own name.
    modules: dict[tuple[str, str], str] = field(default_factory=dict)
    # Name, type, executor, begin, end, thread of the input.
    waiting: list[tuple[Any, ...]] = field(default_factory=list)
    # Name, type, begin, end.
    kernels: list[tuple[str, str, float, float]] = field(default_factory=list)

    def read(self, space: Any) -> Window:
        for plane in space.planes:
            if plane.name == "/host:metadata":
                self.modules.update(_modules(plane))
        for plane in space.planes:
            if "CPU" in plane.name:
                self._read_host(plane)
            elif plane.name.startswith("/device:GPU"):
                self._read_device(plane)
        names: dict[Operation, int] = {}
        for name, kind, owner, begin, end, of_input in self.waiting:
            captured = of_input or owner in self.captured
            operation = Operation(name, kind, self.functions.get(owner, ""), captured)
            number = names.setdefault(operation, len(names))
            self.spans["operations"].append((begin, end, number))
        # A kernel is of the operation that started it.
        started_by = {operation[:2]: number for operation, number in names.items()}
        for name, kind, begin, end in self.kernels:
            if (name, kind) not in started_by:
                number = names.setdefault(Operation(name, kind), len(names))
                started_by[name, kind] = number
            self.spans["kernels"].append((begin, end, started_by[name, kind]))
        self.spans["compiles"] = _joined(self.spans["compiles"])
        intervals = {}
        for kind in ("operations", "kernels", "copies", "stages", "waits", "compiles"):
            begins, ends, numbers = np.array(self.spans[kind], float).reshape(-1, 3).T
            intervals[kind] = Intervals(begins, ends, numbers.astype(np.int64))
        return Window(names=[*names], counts=self.counts, **intervals)

    def _base(self, line: Any) -> float:
        """When a line began: some versions count from the start, some from 1970."""
        base = float(line.timestamp_ns / 1e9)
        return base + self.zero if base < 1e6 else base

    def _read_host(self, plane: Any) -> None:
        names, texts = _names(plane.event_metadata), _names(plane.stat_metadata)
        compiled = "hlo_op" in texts.values()
        kinds = {n: _kind(name, compiled=compiled) for n, name in names.items()}
        for line in plane.lines:
            if line.name.startswith(_COMPILING_THREAD):
                spans = (_span(event, self._base(line)) for event in line.events)
                self.spans["compiles"] += [(*span, 0) for span in spans]
            else:
                self._read_thread(line, names, texts, kinds)

    def _read_thread(
        self, line: Any, names: dict[int, str], texts: dict[int, str], kinds: Any
    ) -> None:
        base, of_input = self._base(line), line.name.startswith("tf_data")
        events = sorted(
            (event for event in line.events if kinds[event.metadata_id] is not None),
            key=lambda event: (event.offset_ps, -event.duration_ps),
        )
        # Until when each goes on, and whose it is.
        owners: list[tuple[int, int]] = []
        nested: list[tuple[int, int, tuple[int, bool]]] = []
        thunks: list[tuple[int, int, str]] = []
        call = ("", -1)
        for event in events:
            kind, offset = kinds[event.metadata_id], event.offset_ps
            until, span = offset + event.duration_ps, _span(event, base)
            if isinstance(kind, tuple) or kind == "process":
                while owners and owners[-1][0] < offset:
                    owners.pop()
            if isinstance(kind, tuple):
                owner = owners[-1][1] if owners else 0
                self.waiting.append((*kind, owner, *span, of_input))
            elif kind == "process":
                owners.append((until, _stat(event, "id", texts, 0)))
            elif kind == "stage":
                path = names[event.metadata_id]
                stage = _stage(path, _stat(event, "name", texts, ""))
                self.counts[stage[0], path] += 1
                nested.append((offset, until, stage))
            elif kind == "thunk":
                name = _stat(event, "hlo_op", texts, "")
                module = _stat(event, "hlo_module", texts, "")
                if name and module:
                    operation = self.modules.get((module, name), name)
                    thunks.append((offset, until, operation))
            elif kind in ("waits", "compiles"):
                self.spans[kind].append((*span, 0))
            elif kind == "captured":
                self.captured.add(_stat(event, "id", texts, 0))
            elif kind == "call":
                call = names[event.metadata_id], until
            elif kind == "function" and offset <= call[1]:
                self.functions[_stat(event, "id", texts, 0)] = _function(call[0])
        for first, last, (number, works) in _alone(nested):
            if number >= 0 and works:
                span = base + first / 1e12, base + last / 1e12
                self.spans["stages"].append((*span, number))
        for first, last, operation in _alone(thunks):
            span = base + first / 1e12, base + last / 1e12
            self.waiting.append((operation, "XLA", 0, *span, False))

    def _read_device(self, plane: Any) -> None:
        # A kernel carries the name of its operation, one that XLA made its
        # instruction's.
        events, texts = _names(plane.event_metadata), _names(plane.stat_metadata)
        for line in plane.lines:
            for event in line.events if "stream" in line.name.lower() else ():
                span = _span(event, self._base(line))
                if events[event.metadata_id] == _COPY:
                    self.spans["copies"].append((*span, 0))
                    continue
                stats = ("tf_op", "hlo_op", "hlo_module")
                operation, hlo, module = (_stat(event, s, texts, "") for s in stats)
                name, _, kind = operation.rpartition(":")
                if hlo and module:
                    name, kind = self.modules.get((module, hlo), hlo), "XLA"
                name = name or kind or events[event.metadata_id]
                self.kernels.append((name, kind, *span))


def _names(metadata: Any) -> dict[int, str]:
    return {number: entry.name for number, entry in metadata.items()}


def _stat(event: Any, name: str, texts: dict[int, str], default: Any) -> Any:
    """What an event says under a name, a number or a text."""
    for stat in event.stats:
        which = stat.WhichOneof("value")
        if which and texts.get(stat.metadata_id) == name:
            value = getattr(stat, which)
            return texts.get(value, "") if which == "ref_value" else value
    return default


def _zero(space: Any, started: float) -> float:
    """When the clock of the lines began."""
    for plane in space.planes:
        texts = _names(plane.stat_metadata)
        if at := _stat(plane, "profile_start_time", texts, 0):
            return float(at) / 1e9
    return started


def _span(event: Any, base: float) -> tuple[float, float]:
    end_ps = event.offset_ps + event.duration_ps
    return base + event.offset_ps / 1e12, base + end_ps / 1e12


def _modules(plane: Any) -> dict[tuple[str, str], str]:
    """Map each instruction of XLA's modules to the operation that it comes from."""
    from tensorflow.compiler.xla.service import hlo_pb2

    names = {}
    for stat in (s for entry in plane.event_metadata.values() for s in entry.stats):
        proto = hlo_pb2.HloProto()
        try:
            proto.ParseFromString(stat.bytes_value)
        except Exception:
            # This stat holds no module.
            continue
        module = proto.hlo_module
        for op in (op for c in module.computations for op in c.instructions):
            if op.metadata.op_name:
                names[module.name, op.name] = op.metadata.op_name
    return names


def _joined(spans: _Spans) -> _Spans:
    """Join spans of compiling across the short pauses between passes."""
    joined: _Spans = []
    for begin, end, _ in sorted(spans):
        if joined and begin - joined[-1][1] < _BETWEEN_S:
            first, last, _ = joined.pop()
            joined.append((first, max(last, end), 0))
        else:
            joined.append((begin, end, 0))
    return joined


def _kind(name: str, *, compiled: bool) -> Any:
    """What an event is, by its name: an operation's name and type, or a word."""
    if match := _OPERATION.match(name):
        operation, kind = match.groups()
        if kind in _NO_WORK or operation in ("Iterator", "ExecutorState"):
            return None
        return operation, kind
    if match := _EVENT.search(name):
        return match.lastgroup
    # Those of XLA are named in no way of their own.
    return "thunk" if compiled and ":" not in name else None


def _alone(nested: list[Any]) -> Iterator[tuple[float, float, Any]]:
    """Yield the stretches of intervals without those of intervals nested in them.

    ``nested`` has begin, end and owner of each, by begin, the longer first.
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
    return re.sub(r"^__(forward|backward)_|_\d+$", "", name)
