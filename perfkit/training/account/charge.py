"""Adds up what was seen: every second of the thread that trains on a line.

What a sample saw in Python is a line's own. While the thread waits for a graph, its
seconds are split over what runs meanwhile, in the proportions of the traced windows:
operations first, then the input's if the step waits for that.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.findings.account import (
    COMPUTING,
    COPYING,
    INPUT,
    PYTHON,
    SET_UP,
    THREAD,
    WAITING,
    stage_kind,
)
from perfkit.training.account.collect import RAW
from perfkit.training.account.graph import Charged, Graphs
from perfkit.training.account.places import IN_GRAPHS, Kind, Place
from perfkit.training.account.sampler import VALIDATION, Key
from perfkit.training.account.trace import (
    Grid,
    Intervals,
    Operation,
    Window,
    read,
    whole_steps,
)
from perfkit.training.profile.course import traces

# What samples of a kind are charged as; all others are Python.
_OF_SAMPLES = {
    Kind.COMPUTING: COMPUTING,
    Kind.TRACED: SET_UP,
    Kind.SET_UP: SET_UP,
}
# A context with less of its seconds in windows borrows from those of its line.
_ENOUGH_S = 0.03
# A line that traced no more often than this did it once: a last batch is smaller.
_FEW_TRACES = 2
_IDLE_S, _LULL_S = 0.005, 0.05
# What TensorFlow puts before the kind of a stage.
_STATES = re.compile(r"^(?:Finite|Forever|Empty)")
_MOST_TYPES = 12
# What is told as it was collected.
_AS_SEEN = (
    *("wall_s", "looking_s", "sampling_s", "samples", "updates", "untraced", "epochs"),
    *("ended", "error", "iterators", "frozen", "signatures", "settings"),
    *("padded", "memory", "models", "new_models", "fills"),
)


def _make_tally() -> dict[str, list[float]]:
    """Return an empty tally: by name, how often and how many seconds."""
    return defaultdict(lambda: [0, 0.0])


@dataclass
class Row:
    """What one line takes; ``perfkit.findings.account.Line`` says more of each.

    Attributes:
        calls: Of public functions: how often, and seconds.
        operations: Of all windows, then in each update of the weights.
        types: Of operations: how many, as above, and seconds of all windows.
        parts: Seconds of windows by what its operations are part of.
        backward_s: Seconds of windows that are the backward pass's.
        traces: Functions that were traced for it again and again.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    beside_s: float = 0.0
    calls: dict[str, list[float]] = field(default_factory=_make_tally)
    operations: float = 0.0
    types: dict[str, list[float]] = field(default_factory=_make_tally)
    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    backward_s: float = 0.0
    starting_s: float = 0.0
    eager_s: float = 0.0
    traces: list[dict[str, Any]] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    elements: int = 0


# What shares are of: line, call, and whether all that was seen of the line counts.
_Context = tuple[Place | None, str, bool]
# Seconds of a context in windows, by line and kind.
_Shares = dict[tuple[Place | None, str], float]
# Which pieces of a window count.
Mask = NDArray[np.bool_]


def charge(folder: str) -> dict[str, Any]:
    """Read the file that ``collect`` wrote into a folder, and charge it to lines."""
    raw = json.loads(Path(folder, RAW).read_text())
    return _Charging(raw, Path(folder)).charge()


def _kind(path: str) -> str:
    """What the innermost stage of a path is, as the class of its dataset is called."""
    return _STATES.sub("", stage_kind(path))


def _above(path: str) -> Iterator[str]:
    """The paths of the stages that a stage feeds, the nearest first."""
    while "::" in path:
        path = path.rpartition("::")[0]
        yield path


class _Charging:
    def __init__(self, raw: dict[str, Any], folder: Path) -> None:
        # Recordings of GPUs are from before these were noted.
        unnoted: dict[str, Any] = {"fills": (False, False)}
        names = ("padded", "memory", "models", "new_models", "iterators")
        unnoted |= dict.fromkeys(names, ())
        self.raw = raw = unnoted | raw
        self.rows: dict[Place, Row] = defaultdict(Row)
        self.once: dict[Place, float] = defaultdict(float)
        self.once_s = self.elsewhere_s = 0.0
        self.stages: list[dict[str, Any]] = []
        background = {(f, n): s for f, n, s in raw["background"]}
        total = sum(background.values())
        # Shares of the Python in other threads, by line.
        self.threads = {p: s / total for p, s in background.items() if total}
        self.keys = [
            Key(tuple(place) if place else None, *rest) for place, *rest in raw["keys"]
        ]
        makers = {(k, n): (file, line) for k, n, file, line in raw["made"]}
        trains = frozenset(t["name"] for t in raw["traces"] if t["trains"])
        self.graphs = Graphs(raw["operations"], makers, trains)
        self.stage_places: list[Place | None] = [
            tuple(place) if place else None for place, _ in raw["stages"]
        ]
        self.windows: list[tuple[Window, dict[str, Any]]] = []
        for window in raw["windows"]:
            for path in traces(str(folder / window["folder"])):
                self.windows.append((read(path, window["started"]), window))
        self.traced_s = sum(w["ended"] - w["started"] for _, w in self.windows)
        repeated = (s for index, s in raw["seconds"] if self.keys[index][3])
        self.untraced_s = float(sum(repeated))
        self.updates = sum(w["updates"][1] - w["updates"][0] for _, w in self.windows)
        # How often each operation of a step ran.
        self.runs = Counter[Operation]()
        self.shares: dict[_Context, _Shares] = defaultdict(lambda: defaultdict(float))
        self.starts: dict[_Context, dict[Place | None, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        # Seconds of each trace since the training began, by line and function.
        self.traces: dict[tuple[Place, str], list[float]] = defaultdict(list)
        # Times a line asked for gradients, the most in one trace: a function may be
        # traced again.
        self.backward = Counter[Place]()
        for trace in raw["traces"]:
            self.backward |= Counter(map(tuple, trace["backward"]))
            if trace["place"] and trace["at"] >= raw["trained_at"]:
                key = tuple(trace["place"]), trace["name"]
                self.traces[key].append(trace["seconds"])
        # Lines that had functions traced, each with the line where that begins.
        self.definitions: list[list[Any]] = []
        self.call_counts = {(f, n): count for f, n, count in raw["iterators"]}
        self.call_counts |= {(f, n): count for f, n, _, count in raw["calls"]}
        # Of the input: how long it worked, and how long a step waited for that.
        self.input_s: dict[Place | None, float] = defaultdict(float)
        self.used_s: dict[Place | None, float] = defaultdict(float)

    def charge(self) -> dict[str, Any]:
        for window, about in self.windows:
            self._split(window, about)
        self._add_samples()
        self._add_calls()
        self._add_traces()
        self._add_lines_of_causes()
        self._add_beside()
        self._add_stages()
        return self._as_note()

    # Windows.

    def _split(self, window: Window, about: dict[str, Any]) -> None:
        samples = about["samples"]
        if not samples:
            return
        times = np.array([at for at, _ in samples])
        labels = [self.keys[index] for _, index in samples]
        edges = np.concatenate(
            [[about["started"]], (times[1:] + times[:-1]) / 2, [about["ended"]]]
        )
        is_step = np.array([not self._is_input(n) for n in window.names], bool)
        of_steps = is_step[window.operations.numbers]
        steps = window.operations.where(of_steps)
        inputs = window.operations.where(~of_steps)
        on_gpu = window.kernels, window.copies
        active = (steps, inputs, window.stages, window.waits, window.compiles, *on_gpu)
        busy = (steps, inputs, window.stages, window.compiles, *on_gpu)
        if not any(len(part.begin) for part in busy) and not self.threads:
            # No work: a graph was optimized, or one operation outlasts the window.
            return
        grid = Grid(edges, active)
        # A GPU's steps are short, and its kernels run behind the operations.
        on_card = len(window.kernels.begin) > 0
        whole = None if on_card else whole_steps(steps, edges[-1] - edges[0])
        inside = grid.within(*(whole or (edges[0], edges[-1])))
        # Before the first operation and behind the last one runs what was cut off.
        ends = steps.begin.min(initial=np.inf), steps.end.max(initial=-np.inf)
        uncut = grid.within(*ends) | (on_card or not len(steps.begin))
        for place, call in {(p, c) for p, c, k, _ in labels if k in IN_GRAPHS}:
            for near in (False, True):
                context = place, call, near
                self._split_context(
                    window, grid, labels, context, steps, inputs, inside, uncut
                )
        self._note_work(window, steps, inputs)

    def _split_context(
        self,
        window: Window,
        grid: Grid,
        labels: list[Key],
        context: _Context,
        steps: Intervals,
        inputs: Intervals,
        inside: Mask,
        uncut: Mask,
    ) -> None:
        place, call, near = context
        mine = [
            p == place if near else (p, c) == (place, call) and k in IN_GRAPHS
            for p, c, k, _ in labels
        ]
        member = grid.over(np.array(mine, float)) * inside
        data = grid.over(np.array([k == Kind.DATA for _, _, k, _ in labels], float))
        step_n, input_n, stage_n, wait_n, compile_n, kernel_n, copy_n = grid.active
        on_gpu = kernel_n > 0
        copying = (copy_n > 0) & ~on_gpu
        busy = (step_n > 0) | on_gpu | copying
        compiling = (compile_n > 0) & ~busy & (member > 0)
        # A wait that is longer than the window is not in it: a step does not stand
        # still for so long between two operations.
        fed = (input_n > 0) | (stage_n > 0)
        idle = (grid.stretches(~busy, fed) > 0) & (grid.stretches(~busy) > _IDLE_S)
        waits = ((wait_n > 0) | (data > 0) | idle) & ~busy & ~compiling
        # A longer one without any of it waits for Python that makes the input.
        lull = (grid.stretches(~busy & ~waits & ~compiling) > _LULL_S) & bool(
            self.threads
        )
        gaps = member * uncut * ~busy * ~waits * ~compiling * ~lull * (not near)
        spans, shares = grid.spans, self.shares[context]
        if python_s := float((member * lull) @ spans):
            self._share_python(shares, place, python_s, INPUT)
        shares[place, SET_UP] += float((member * compiling) @ spans)
        if copied_s := float((member * copying) @ spans):
            self._share_input(shares, place, copied_s, near=near)
            if place and not near:
                self.rows[place].parts[COPYING] += copied_s
        launched = {*map(int, window.kernels.numbers)}
        for intervals, count, weight, kind in (
            (window.kernels, kernel_n, member * on_gpu, COMPUTING),
            # Beside a kernel the processor only starts those to come.
            (steps, step_n, member * busy * ~on_gpu * ~copying, COMPUTING),
            (inputs, input_n, member * waits * (input_n > 0), INPUT),
        ):
            spent = grid.spent(intervals, weight / np.maximum(count, 1))
            sums = np.bincount(intervals.numbers, spent, len(window.names))
            for number in np.flatnonzero(sums > 0):
                operation, seconds = window.names[number], float(sums[number])
                if operation.is_python:
                    self._share_python(shares, place, seconds, kind)
                    continue
                owner = self._charged(operation)
                if kind == INPUT:
                    self._share_input(shares, owner.place, seconds, near=near)
                    continue
                to = owner.place or place
                shares[to, COMPUTING] += seconds
                if intervals is steps and int(number) in launched:
                    self.starts[context][to] += seconds
                if not near:
                    self._note_part(to, owner, operation.kind, seconds)
        of_stages = member * waits * (input_n == 0) * (stage_n > 0)
        spent = grid.spent(window.stages, of_stages / np.maximum(stage_n, 1))
        for number, seconds in zip(window.stages.numbers, spent, strict=True):
            to = self._place_of_stage(number)
            self._share_input(shares, to, float(seconds), near=near)
        # What lies between two operations is starting the second one; with a GPU it
        # lies between two steps, whose operations begin in any order.
        for following, gap_s in grid.before(steps, gaps * spans):
            to = place
            if (
                following >= 0
                and not launched
                and not window.names[following].is_python
            ):
                to = self._charged(window.names[following]).place or place
            shares[to, COMPUTING] += gap_s
            self.starts[context][to] += gap_s
        of_nothing = member * waits * (input_n == 0) * (stage_n == 0)
        for following, gap_s in grid.before(inputs, of_nothing * spans):
            if following < 0:
                shares[place, WAITING] += gap_s
            elif window.names[following].is_python:
                self._share_python(shares, place, gap_s, INPUT)
            else:
                to = self._charged(window.names[following]).place
                self._share_input(shares, to, gap_s, near=near)

    def _share_input(
        self, shares: _Shares, to: Place | None, seconds: float, *, near: bool
    ) -> None:
        shares[to, INPUT] += seconds
        if not near:
            self.used_s[to] += seconds

    def _share_python(
        self, shares: _Shares, place: Place | None, seconds: float, kind: str
    ) -> None:
        """Python that a graph runs is that of the lines seen in other threads."""
        if not self.threads:
            shares[place, PYTHON] += seconds
        for to, share in self.threads.items():
            shares[to, INPUT if kind == INPUT else PYTHON] += seconds * share
            self.rows[to].parts[THREAD] += seconds * share

    def _is_input(self, operation: Operation) -> bool:
        if not operation.of_input:
            return False
        # A loop over a dataset within a function trains in a function of the input.
        plain = operation.name.rpartition("/body/")[2]
        functions = {
            function
            for function, operations in self.graphs.operations.items()
            if operation.name in operations or plain in operations
        }
        of_data = any(function.startswith("Dataset_") for function in functions)
        return of_data or not functions & self.graphs.trains

    def _charged(self, operation: Operation) -> Charged:
        name, kind, function, of_input = operation
        return self.graphs.charge(name, function, of_input=of_input, kind=kind)

    def _place_of_stage(self, number: int) -> Place | None:
        is_known = number < len(self.stage_places)
        return self.stage_places[number] if is_known else None

    def _note_part(
        self, place: Place | None, owner: Charged, type_: str, seconds: float
    ) -> None:
        if place is None:
            return
        row = self.rows[place]
        kind = self.raw["classes"].get(owner.name, "") if owner.part == "layer" else ""
        row.parts[f"{owner.part} {owner.name} {kind}".strip()] += seconds
        row.backward_s += seconds * owner.backward
        row.types[type_][1] += seconds

    def _note_work(self, window: Window, steps: Intervals, inputs: Intervals) -> None:
        counts = np.bincount(steps.numbers, minlength=len(window.names))
        # XLA starts kernels without an operation on the processor: each one counts.
        kernels = np.bincount(window.kernels.numbers, minlength=len(window.names))
        counts = np.where(counts, counts, kernels)
        for number in np.flatnonzero(counts):
            operation = window.names[number]
            self.runs[operation] += int(counts[number])
            owner = self._charged(operation)
            if owner.place is not None:
                row = self.rows[owner.place]
                row.operations += int(counts[number])
                row.types[operation.kind][0] += int(counts[number])
                if owner.part == "optimizer":
                    elements = self.graphs.elements(operation.name, operation.function)
                    row.elements = max(row.elements, elements)
        lengths = np.bincount(
            inputs.numbers, inputs.end - inputs.begin, len(window.names)
        )
        for number in np.flatnonzero(lengths):
            if not window.names[number].is_python:
                place = self._charged(window.names[number]).place
                self.input_s[place] += float(lengths[number])
        spent = window.stages.end - window.stages.begin
        for number, seconds in zip(window.stages.numbers, spent, strict=True):
            self.input_s[self._place_of_stage(number)] += float(seconds)

    # Samples.

    def _add_samples(self) -> None:
        retraced = self._retraced()
        trained = bool(self.raw["trained_at"])
        sampled_s = max(1.0, self.untraced_s)
        for index, seconds in self.raw["seconds"]:
            place, call, kind, repeats = self.keys[index]
            if place is None:
                if kind == Kind.IMPORT:
                    self.once_s += seconds
                else:
                    self.elsewhere_s += seconds
                continue
            share = 1.0
            if (trained and not repeats) or kind == Kind.IMPORT:
                share = 0.0
            elif kind == Kind.TRACED and trained:
                share = retraced.get(place, 0.0)
            elif kind == Kind.SET_UP and self.call_counts.get(place) == 1:
                share = 0.0
            self.once_s += (1 - share) * seconds
            self.once[place] += (1 - share) * seconds
            seconds *= share
            if not seconds:
                continue
            if kind in IN_GRAPHS:
                self._spread(place, call, kind, seconds)
            row = self.rows[place]
            if call:
                row.calls["fit" if call == VALIDATION else call][1] += seconds
            if kind not in IN_GRAPHS:
                row.seconds[_OF_SAMPLES.get(kind, PYTHON)] += seconds
                row.eager_s += seconds * (kind == Kind.COMPUTING)
            if kind == Kind.CALLBACK:
                # As long as it would have been in the windows, as all other parts.
                row.parts[f"callback {call}"] += seconds * self.traced_s / sampled_s

    def _retraced(self) -> dict[Place, float]:
        """Return the share of each line's tracing that repeats.

        The first trace of a function is made once, and so is a smaller batch's.
        """
        total: dict[Place, float] = defaultdict(float)
        again: dict[Place, float] = defaultdict(float)
        for (place, _), times in self.traces.items():
            total[place] += sum(times)
            again[place] += sum(times) * (len(times) > _FEW_TRACES)
        return {place: again[place] / spent for place, spent in total.items() if spent}

    def _spread(self, place: Place, call: str, kind: str, seconds: float) -> None:
        for near in (False, True):
            shares = self.shares.get((place, call, near), {})
            total = sum(shares.values())
            if total > _ENOUGH_S:
                break
        else:
            # No window saw this context, so only its line is known.
            shares, total = defaultdict(float), 1.0
            if self.threads:
                self._share_python(shares, place, 1.0, INPUT)
            else:
                shares[place, COMPUTING if kind == Kind.GRAPH else WAITING] = 1.0
        for (to, of_share), share in shares.items():
            self.rows[to or place].seconds[of_share] += seconds * share / total
        for to, share in self.starts.get((place, call, near), {}).items():
            self.rows[to or place].starting_s += seconds * share / total

    def _add_calls(self) -> None:
        for file, line, name, count in self.raw["calls"]:
            if (file, line) in self.rows or count > _FEW_TRACES:
                self.rows[file, line].calls[name][0] = count
        # What takes no gradients makes steps all the same: most of their operations
        # run once in each.
        runs = sorted(self.runs.values()) or [1]
        steps = self.updates or runs[len(runs) // 2]
        for row in self.rows.values():
            row.operations /= steps
            for counts in row.types.values():
                counts[0] /= steps

    def _add_traces(self) -> None:
        for (place, name), times in self.traces.items():
            if len(times) > _FEW_TRACES:
                about = {"name": name, "count": len(times), "seconds": sum(times)}
                self.rows[place].traces.append(about)
                if definition := self.raw["definitions"].get(name):
                    self.definitions.append([*place, definition])

    def _add_lines_of_causes(self) -> None:
        """Give a row to lines that causes name although their time is on others."""
        raw = self.raw
        places = [
            *self.backward,
            *(place for _, place in raw["settings"] if place),
            *(
                entry[:2]
                for entry in (*raw["padded"], *raw["models"], *raw["new_models"])
            ),
            *(entry[:2] for entry in raw["iterators"] if entry[2] > _FEW_TRACES),
            *(definition for *_, definition in self.definitions),
        ]
        for place in places:
            self.rows.setdefault(tuple(place), Row())

    def _add_beside(self) -> None:
        if not self.traced_s:
            return
        scale = self.untraced_s / self.traced_s
        for place, seconds in self.input_s.items():
            hidden = seconds - self.used_s.get(place, 0.0)
            if place is not None and hidden > 0:
                self.rows[place].beside_s += hidden * scale

    def _add_stages(self) -> None:
        counts = Counter[tuple[int, str]]()
        for window, _ in self.windows:
            counts.update(window.counts)
        # Elements that came from right below a stage, and the most of any below it.
        below, inside = Counter[str](), Counter[str]()
        counts.update(self._unfinished(counts))
        for (_, path), count in counts.items():
            below[path.rpartition("::")[0]] += count
            for above in _above(path):
                inside[above] = max(inside[above], count)
        for (number, path), count in counts.items():
            if not 0 <= number < len(self.stage_places) or path.endswith("::Root"):
                continue
            place = self.stage_places[number]
            if place and not count:
                # It has a row, although it takes no time itself.
                self.rows.setdefault(place, Row())
            if place in self.rows:
                self.rows[place].stages.append(len(self.stages))
            given = below[path] or inside[path]
            self.stages.append(
                {"path": path, "place": place, "out": count, "given": given}
            )

    def _unfinished(
        self, counts: Mapping[tuple[int, str], int]
    ) -> dict[tuple[int, str], int]:
        """Stages that gave nothing in all windows, although those below them did.

        They have no events; a stage is known by its kind if only one line made such.
        """
        seen = {path for _, path in counts}
        # Their first two parts are no stages.
        above = {a for path in seen for a in _above(path) if a.count("::") > 1}
        places: dict[str, set[Place]] = defaultdict(set)
        numbers = dict[str, int]()
        for number, (place, name) in enumerate(self.raw["stages"]):
            kind = name.strip("_").removesuffix("Dataset")
            if place:
                places[kind].add(tuple(place))
                numbers[kind] = number
        kinds = {path: _kind(path) for path in above - seen}
        return {
            (numbers[kind], path): 0
            for path, kind in kinds.items()
            if len(places.get(kind, ())) == 1
        }

    def _as_note(self) -> dict[str, Any]:
        rows = []
        for place, row in self.rows.items():
            types = sorted(row.types.items(), key=lambda t: -t[1][1])[:_MOST_TYPES]
            # They travel to another process.
            plain = {"calls": dict(row.calls), "types": dict(types)}
            rows.append({"place": place} | vars(row) | plain)
        return {
            "rows": rows,
            "once_s": self.once_s,
            "once": [[*place, s] for place, s in self.once.items()],
            "elsewhere_s": self.elsewhere_s,
            "stages": self.stages,
            "traced_s": self.traced_s,
            "backward": [[*place, count] for place, count in self.backward.items()],
            "definitions": self.definitions,
            "callers": [
                [*place, calls.most_common(1)[0][0]]
                for place, calls in self.graphs.callers.items()
            ],
            **{name: self.raw[name] for name in _AS_SEEN},
        }
