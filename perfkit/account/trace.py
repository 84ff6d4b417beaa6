"""A window of TensorFlow's own profiler, as intervals of time.

The profiler writes events by thread. Those of operations are named ``NAME:TYPE``; an
executor's event around them says whose function they are part of. Those of the input
are nested, and carry the number that ``watch`` gave to their stage.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.account.watch import STAGE

Floats = NDArray[np.float64]
_OPERATION = re.compile(r"^([\w.\-/>]+):([A-Za-z_]\w*)$")
_WAITS = "IteratorGetNextOp::DoCompute"
_CAPTURED = "InstantiatedCapturedFunction::"
_PROCESS = "ExecutorState::Process"
# They contain others, or wait for them.
_AROUND = frozenset(
    {
        *("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"),
        *("If", "StatelessIf", "Case", "StatelessCase", "ReduceDataset"),
        *("IteratorGetNext", "IteratorGetNextSync", "_Recv", "_Send", "_HostRecv"),
        *("RemoteCall", "TPUPartitionedCall"),
    }
)
_PYTHON = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})
# Stages that hand on what other threads make: their own time is a wait.
_HANDS_ON = re.compile(r"Prefetch|Parallel|MapAndBatch|Root|Model|Options|FiniteTake")
# What XLA does before it can run anything: passes over a module, and their compilers.
_COMPILES = re.compile(
    r"Compiler|::Compile|^(?:dce|algsimp|cse|simplification|constant_folding|fusion|"
    r"layout-assignment|copy-insertion)$"
)
_COMPILING_THREAD = "tf_xla-cpu-codegen"
# Passes follow each other: what lies between two of them is compiling, too.
_BETWEEN_S = 0.3
_UNCOUNTED = frozenset({"_Arg", "_Retval"})


@dataclass
class Intervals:
    """Begin and end in seconds, and which of some names each one is.

    Attributes:
        begin: On the clock of ``time.time``; ``end`` likewise.
        which: Index into whatever names them.
    """

    begin: Floats
    end: Floats
    which: NDArray[np.int64]

    @classmethod
    def of(cls, found: list[tuple[float, float, int]]) -> "Intervals":
        """Make them of tuples."""
        table = np.array(found or np.zeros((0, 3)), float).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2].astype(np.int64))


@dataclass
class Window:
    """What one window holds.

    Attributes:
        names: Of operations: name, type, function, and whether the input runs it.
        operations: Intervals of these.
        stages: Of the numbers of stages, each where nothing below it is at work.
        waits: In which a step waits for its data.
        compiles: In which XLA compiles.
        counts: Elements that each stage gave out, by its number and its place in the
            pipeline: ``"…::Filter::Shuffle"`` gives its own to a filter.
    """

    names: list[tuple[str, str, str, bool]]
    operations: Intervals
    stages: Intervals
    waits: Intervals
    compiles: Intervals
    counts: dict[tuple[int, str], int]


@dataclass
class _Reading:
    names: dict[tuple[str, str, str, bool], int] = field(default_factory=dict)
    operations: list[tuple[float, float, int]] = field(default_factory=list)
    stages: list[tuple[float, float, int]] = field(default_factory=list)
    waits: list[tuple[float, float, int]] = field(default_factory=list)
    compiles: list[tuple[float, float, int]] = field(default_factory=list)
    counts: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    captured: set[int] = field(default_factory=set)
    functions: dict[int, str] = field(default_factory=dict)
    # What XLA made of which operation, by its module and its own name.
    modules: dict[tuple[str, str], str] = field(default_factory=dict)
    # Name, type, executor, begin, end, thread of the input.
    waiting: list[tuple[str, str, int, float, float, bool]] = field(
        default_factory=list
    )


def read(path: Path, started: float) -> Window:
    """Read a window's file.

    Args:
        path: The ``.xplane.pb``.
        started: When it began, where the file does not say.
    """
    space = _parsed(path)
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
    for name, kind, owner, begin, end, of_input in reading.waiting:
        captured = of_input or owner in reading.captured
        key = name, kind, reading.functions.get(owner, ""), captured
        number = reading.names.setdefault(key, len(reading.names))
        reading.operations.append((begin, end, number))
    return Window(
        list(reading.names),
        Intervals.of(reading.operations),
        Intervals.of(reading.stages),
        Intervals.of(reading.waits),
        Intervals.of(_joined(reading.compiles)),
        dict(reading.counts),
    )


def _parsed(path: Path) -> Any:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    return space


def _zero(space: Any, started: float) -> float:
    """When the clock of the lines began."""
    for plane in space.planes:
        names = {n: one.name for n, one in plane.stat_metadata.items()}
        for stat in plane.stats:
            if names.get(stat.metadata_id) == "profile_start_time":
                at = stat.uint64_value or stat.int64_value
                if at:
                    return float(at) / 1e9
    return started


def _modules(plane: Any) -> dict[tuple[str, str], str]:
    """Which operation each instruction of XLA's modules comes from."""
    from tensorflow.compiler.xla.service import hlo_pb2

    found = {}
    for metadata in plane.event_metadata.values():
        for stat in metadata.stats:
            proto = hlo_pb2.HloProto()
            try:
                proto.ParseFromString(stat.bytes_value)
            except Exception:
                # Another stat than the module.
                continue
            module = proto.hlo_module
            for computation in module.computations:
                for one in computation.instructions:
                    if one.metadata.op_name:
                        found[module.name, one.name] = one.metadata.op_name
    return found


def _joined(found: list[tuple[float, float, int]]) -> list[tuple[float, float, int]]:
    """Stretches of compiling, with the short pauses between passes."""
    joined: list[list[float]] = []
    for begin, end, _ in sorted(found):
        if joined and begin - joined[-1][1] < _BETWEEN_S:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return [(begin, end, 0) for begin, end in joined]


def _host(plane: Any, zero: float, reading: _Reading) -> None:
    metadata = {n: one.name for n, one in plane.event_metadata.items()}
    stats = {n: one.name for n, one in plane.stat_metadata.items()}
    numbers = {name: n for n, name in stats.items()}
    wanted = [numbers.get(name, -1) for name in ("id", "name", "hlo_op", "hlo_module")]
    compiled = numbers.get("hlo_op") is not None
    kinds = {n: _kind(name, compiled=compiled) for n, name in metadata.items()}
    for line in plane.lines:
        base = line.timestamp_ns / 1e9
        # Some versions count from the start, some from 1970.
        base += zero if base < 1e6 else 0.0
        if line.name.startswith(_COMPILING_THREAD):
            reading.compiles += [
                (base + one.offset_ps / 1e12, base + _end(one) / 1e12, 0)
                for one in line.events
            ]
            continue
        of_input = line.name.startswith("tf_data")
        tables = metadata, stats, kinds, wanted
        _thread(line, base, tables, reading, of_input=of_input)


def _end(event: Any) -> int:
    return int(event.offset_ps + event.duration_ps)


def _kind(name: str, *, compiled: bool) -> Any:
    """What an event is, by its name: an operation's name and type, or a word."""
    if match := _OPERATION.match(name):
        operation, kind = match.groups()
        if kind in _AROUND | _UNCOUNTED or operation in ("Iterator", "ExecutorState"):
            return None
        return operation, kind
    if name.startswith("Iterator::"):
        return "stage"
    if name == _PROCESS:
        return "process"
    if name == _WAITS:
        return "wait"
    if name.startswith(_CAPTURED):
        return "captured"
    if name == "FunctionRun":
        return "function"
    if name.startswith("EagerLocalExecute: __"):
        return "call"
    if _COMPILES.search(name):
        return "compile"
    # Those of XLA are named in no way of their own.
    return "thunk" if compiled and ":" not in name else None


def _thread(
    line: Any, base: float, tables: Any, reading: _Reading, *, of_input: bool
) -> None:
    metadata, stats, kinds, (id_stat, name_stat, hlo_stat, module_stat) = tables
    events = sorted(
        (
            (one.offset_ps, one.duration_ps, one)
            for one in line.events
            if kinds[one.metadata_id] is not None
        ),
        key=lambda one: (one[0], -one[1]),
    )
    owners: list[tuple[int, int]] = []
    nested: list[list[Any]] = []
    thunks: list[list[Any]] = []
    called = ("", -1)
    for offset, length, event in events:
        kind = kinds[event.metadata_id]
        begin, end = base + offset / 1e12, base + (offset + length) / 1e12
        if isinstance(kind, tuple):
            while owners and owners[-1][0] < offset:
                owners.pop()
            owner = owners[-1][1] if owners else 0
            reading.waiting.append((*kind, owner, begin, end, of_input))
        elif kind == "process":
            while owners and owners[-1][0] < offset:
                owners.pop()
            owners.append((offset + length, _stat(event, id_stat)))
        elif kind == "stage":
            path, name = metadata[event.metadata_id], ""
            for stat in event.stats:
                if stat.metadata_id == name_stat:
                    name = stats.get(stat.ref_value, "") or stat.str_value
            _unwind(nested, offset, base, reading)
            stage = _stage(path, name)
            reading.counts[stage[0], path] += 1
            nested.append([offset, offset + length, stage, offset])
        elif kind == "thunk":
            values = {one.metadata_id: one for one in event.stats}
            if hlo_stat in values and module_stat in values:
                module = stats.get(values[module_stat].ref_value, "")
                name = stats.get(values[hlo_stat].ref_value, "")
                named = reading.modules.get((module, name), name)
                _unwind(thunks, offset, base, reading)
                thunks.append([offset, offset + length, named, offset])
        elif kind == "wait":
            reading.waits.append((begin, end, 0))
        elif kind == "captured":
            reading.captured.add(_stat(event, id_stat))
        elif kind == "call":
            called = metadata[event.metadata_id], offset + length
        elif kind == "function":
            if offset <= called[1]:
                reading.functions[_stat(event, id_stat)] = _function(called[0])
        elif kind == "compile":
            reading.compiles.append((begin, end, 0))
    _unwind(nested, float("inf"), base, reading)
    _unwind(thunks, float("inf"), base, reading)


def _unwind(
    nested: list[list[Any]], until: float, base: float, reading: _Reading
) -> None:
    """End what is over, and cut what is open where another one begins within it."""
    while nested and nested[-1][1] <= until:
        _, end, what, last = nested.pop()
        _cut(what, base + last / 1e12, base + end / 1e12, reading)
        if nested:
            nested[-1][3] = max(nested[-1][3], end)
    if nested and until != float("inf"):
        _cut(nested[-1][2], base + nested[-1][3] / 1e12, base + until / 1e12, reading)
        nested[-1][3] = until


def _cut(what: Any, begin: float, end: float, reading: _Reading) -> None:
    """Note a stretch in which nothing within a stage, or a thunk, is at work."""
    if end <= begin:
        return
    if isinstance(what, str):
        reading.waiting.append((what, "XLA", 0, begin, end, False))
    elif what[0] >= 0 and what[1]:
        reading.stages.append((begin, end, what[0]))


def _stage(path: str, name: str) -> tuple[int, bool]:
    """The number of a stage, -1 for none, and whether its own time is work."""
    last = path.rpartition("::")[2].partition("#")[0]
    number = int(name[len(STAGE) :]) if _numbered(name) else -1
    return number, not _HANDS_ON.match(last)


def _numbered(name: str) -> bool:
    return name.startswith(STAGE) and name[len(STAGE) :].isdecimal()


def _function(event: str) -> str:
    name = event.partition(": ")[2].removeprefix("__inference_")
    name = re.sub(r"^__(forward|backward)_", "", name)
    return re.sub(r"_\d+$", "", name)


def _stat(event: Any, wanted: int) -> int:
    for stat in event.stats:
        if stat.metadata_id == wanted:
            return int(stat.int64_value or stat.uint64_value)
    return 0


def _device(plane: Any, zero: float, reading: _Reading) -> None:
    """Kernels of a GPU, which carry the name of their operation."""
    stats = {n: one.name for n, one in plane.stat_metadata.items()}
    numbers = {name: n for n, name in stats.items()}
    wanted = numbers.get("tf_op", -1)
    for line in plane.lines:
        if "Stream" not in line.name and "stream" not in line.name:
            continue
        base = line.timestamp_ns / 1e9
        base += zero if base < 1e6 else 0.0
        for event in line.events:
            named = ""
            for stat in event.stats:
                if stat.metadata_id == wanted:
                    named = stat.str_value or stats.get(stat.ref_value, "")
            name, _, kind = named.partition(":")
            if name:
                begin = base + event.offset_ps / 1e12
                end = begin + event.duration_ps / 1e12
                reading.waiting.append((name, kind, 0, begin, end, False))


def is_python(kind: str) -> bool:
    """Whether a type of operation runs Python."""
    return kind in _PYTHON
