"""Adds up what was seen: every second of the thread that trains on a line.

What a sample saw in Python is a line's own. While the thread waits for a graph, its
seconds are split over what runs meanwhile, in the proportions of the traced windows:
operations first, then the input's if the step waits for that.
"""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from perfkit.engine.trial import Note
from perfkit.findings.account import (
    COMPUTING,
    COPYING,
    INPUT,
    PYTHON,
    SET_UP,
    THREAD,
    WAITING,
    Call,
    Line,
    Retraced,
    Stage,
    stage_kind,
)
from perfkit.training.account.collect import RAW
from perfkit.training.account.graph import Charged, Graphs, above
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

CHARGED = "charged"
# What samples of a kind are charged as; all others are Python.
_OF_SAMPLES = {Kind.COMPUTING: COMPUTING, Kind.TRACED: SET_UP, Kind.SET_UP: SET_UP}
# A context with less of its seconds in windows borrows from those of its line.
_ENOUGH_S = 0.03
# A line that traced no more often than this did it once: a last batch is smaller.
_FEW_TRACES = 2
_IDLE_S, _LULL_S = 0.005, 0.05
# What TensorFlow puts before the kind of a stage.
_STATES = re.compile(r"^(?:Finite|Forever|Empty)")
# Stages that give another number of elements than they are given.
_RESIZES = re.compile(r"atch|FlatMap|Interleave|Window|Filter|Repeat|Skip|Concatenate")
_MOST_TYPES, _MOST_CHANGES = 12, 3
_UNSEEN = "Too few steps were traced: part of this time may be waiting for input."
# A loop that makes its data anew makes its stages anew.
_MOST_LINES, _MOST_STAGES = 1000, 1000
# What is told as it was collected.
_AS_SEEN = (
    *("wall_s", "looking_s", "sampling_s", "samples", "updates", "epochs"),
    *("ended", "error", "iterators", "frozen", "settings", "padded", "memory"),
    *("models", "new_models", "fills"),
)


def _sums() -> dict[Any, float]:
    return defaultdict(float)


def _tally() -> dict[str, list[float]]:
    """By name, how often and how many seconds."""
    return defaultdict(lambda: [0, 0.0])


@dataclass
class Row:
    """What one line takes; ``perfkit.findings.account.Line`` says more of each.

    Attributes:
        operations: Of all windows, then in each update of the weights.
        types: Of operations: how many, as above, and seconds of all windows.
        parts: Seconds of windows by what its operations are part of.
        backward: Seconds of windows that are the backward pass's.
    """

    seconds: dict[str, float] = field(default_factory=_sums)
    calls: dict[str, list[float]] = field(default_factory=_tally)
    operations: float = 0.0
    types: dict[str, list[float]] = field(default_factory=_tally)
    parts: dict[str, float] = field(default_factory=_sums)
    backward: float = 0.0
    starting_s: float = 0.0
    eager_s: float = 0.0
    beside_s: float = 0.0
    traces: list[Retraced] = field(default_factory=list)
    elements: int = 0

    def as_line(self, place: Place) -> Line:
        """Return the line, whose file nobody has given a shorter name yet."""
        # Both in the seconds of the windows.
        traced_s, parts = sum(self.parts.values()), self.parts
        calls = sorted(self.calls.items(), key=lambda call: -call[1][1])[:8]
        types = sorted(self.types.items(), key=lambda kind: -kind[1][1])[:_MOST_TYPES]
        about: dict[str, Any] = {
            "seconds": {kind: s for kind, s in self.seconds.items() if s > 0},
            "calls": tuple(
                Call(name=n, count=int(c), seconds=s) for n, (c, s) in calls
            ),
            "types": tuple((name, count) for name, (count, _) in types),
            "parts": tuple(sorted(parts, key=lambda part: -parts[part])[:8]),
            "backward": self.backward / traced_s if traced_s else 0.0,
            "traces": tuple(self.traces[:4]),
        }
        return Line(file=place[0], line=place[1], **vars(self) | about)


# What shares are of: line, call, and whether all that was seen of the line counts.
_Context = tuple[Place | None, str, bool]
# Seconds of a context in windows, by line and kind.
_Shares = dict[tuple[Place | None, str], float]


def charge(folder: str) -> Iterator[Note]:
    """Charge what ``collect`` wrote into a folder to lines: the note ``"charged"``."""
    raw = _with_tuples(json.loads(Path(folder, RAW).read_text()))
    yield Note(CHARGED, _Charging(raw, Path(folder)).charge())


def _with_tuples(value: Any) -> Any:
    """What JSON says with tuples for lists, so that a place is one."""
    if isinstance(value, dict):
        return {name: _with_tuples(part) for name, part in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


class _Charging:
    def __init__(self, raw: dict[str, Any], folder: Path) -> None:
        self.raw = raw
        self.rows: dict[Place, Row] = defaultdict(Row)
        self.once_s = self.elsewhere_s = self.pass_ends_s = self.unseen_s = 0.0
        # Each with the place of its line.
        self.stages: list[tuple[Place | None, Stage]] = []
        background = {(f, n): s for f, n, s in raw["background"]}
        total = sum(background.values())
        # Shares of the Python in other threads, by line.
        self.threads = {p: s / total for p, s in background.items() if total}
        self.keys = [Key(*key) for key in raw["keys"]]
        makers = {(k, n): (file, line) for k, n, file, line in raw["made"]}
        trains = frozenset(t["name"] for t in raw["traces"] if t["trains"])
        self.graphs = Graphs(raw["operations"], makers, trains)
        self.stage_places = {n: at for n, (at, _) in enumerate(raw["stages"])}
        self.windows = [
            (read(path, window["started"]), window)
            for window in raw["windows"]
            for path in traces(str(folder / window["folder"]))
        ]
        self.traced_s = sum(w["ended"] - w["started"] for _, w in self.windows)
        repeated = (s for index, s in raw["seconds"] if self.keys[index].repeats)
        self.untraced_s = float(sum(repeated))
        self.updates = sum(w["updates"][1] - w["updates"][0] for _, w in self.windows)
        # How often each operation of a step ran.
        self.runs = Counter[Operation]()
        self.shares: dict[_Context, _Shares] = defaultdict(_sums)
        self.starts: dict[_Context, dict[Place | None, float]] = defaultdict(_sums)
        # Seconds of each trace since the training began, by line and function.
        self.traces: dict[tuple[Place, str], list[float]] = defaultdict(list)
        # Times a line asked for gradients of the same weights, the most in one trace: a
        # function may be traced again.
        self.backward = Counter[Place]()
        for trace in raw["traces"]:
            for is_place, group in itertools.groupby(trace["backward"], bool):
                self.backward |= Counter(group) if is_place else Counter()
            if trace["place"] and trace["at"] >= raw["trained_at"]:
                self.traces[trace["place"], trace["name"]].append(trace["seconds"])
        # Lines that had functions traced, each with the line where that begins.
        self.definitions: list[list[Any]] = []
        self.call_counts = {(f, n): count for f, n, count in raw["iterators"]}
        self.call_counts |= {(f, n): count for f, n, _, count in raw["calls"]}
        # Seconds of windows in which the input worked, whoever waited for it.
        self.input_s: dict[Place | None, float] = _sums()

    def charge(self) -> dict[str, Any]:
        for window, about in self.windows:
            if about["samples"]:
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
        times = np.array([at for at, _ in about["samples"]])
        labels = [self.keys[index] for _, index in about["samples"]]
        between = (times[1:] + times[:-1]) / 2
        edges = np.concatenate([[about["started"]], between, [about["ended"]]])
        is_step = np.array([not self._is_input(n) for n in window.names], bool)
        of_steps = is_step[window.operations.numbers]
        steps, inputs = map(window.operations.where, (of_steps, ~of_steps))
        busy = [steps, inputs, window.stages, window.compiles]
        busy += [window.kernels, window.copies]
        if not any(len(part.begin) for part in busy) and not self.threads:
            # No work: a graph was optimized, or one operation outlasts the window.
            return
        grid = Grid(edges, (*busy, window.waits))
        for place, call in {key[:2] for key in labels if key.kind in IN_GRAPHS}:
            mine = [k[:2] == (place, call) and k.kind in IN_GRAPHS for k in labels]
            self._split_context(window, grid, labels, mine, (place, call, False))
            near = [key.place == place for key in labels]
            self._split_context(window, grid, labels, near, (place, call, True))
        self._note_work(window, steps)
        for number, seconds in inputs.lengths():
            if not window.names[number].is_python:
                self.input_s[self.graphs.charge(window.names[number]).place] += seconds
        for number, seconds in window.stages.lengths():
            self.input_s[self.stage_places.get(number)] += seconds

    def _split_context(
        self,
        window: Window,
        grid: Grid,
        labels: list[Key],
        mine: list[bool],
        context: _Context,
    ) -> None:
        place, _, near = context
        spans, shares, starts = grid.spans, self.shares[context], self.starts[context]
        steps, inputs, *_ = grid.parts
        step_n, input_n, stage_n, compile_n, kernel_n, copy_n, wait_n = grid.active
        # A GPU's steps are short, and its kernels run behind the operations.
        on_card = len(window.kernels.begin) > 0
        whole = None if on_card else whole_steps(steps, grid.end - grid.begin)
        inside = grid.within(*(whole or (grid.begin, grid.end)))
        # Before the first operation and behind the last one runs what was cut off.
        ends = steps.begin.min(initial=np.inf), steps.end.max(initial=-np.inf)
        uncut = grid.within(*ends) | (on_card or not len(steps.begin))
        member = grid.over(np.array(mine, float)) * inside
        data = grid.over(np.array([key.kind == Kind.DATA for key in labels], float))
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
        idling = ~busy & ~waits & ~compiling
        lull = (grid.stretches(idling) > _LULL_S) & bool(self.threads)
        if python_s := float((member * lull) @ spans):
            self._share_python(shares, place, python_s, INPUT)
        shares[place, SET_UP] += float((member * compiling) @ spans)
        if copied_s := float((member * copying) @ spans):
            shares[place, INPUT] += copied_s
            if place and not near:
                self.rows[place].parts[COPYING] += copied_s
        launched = {*map(int, window.kernels.numbers)}
        for intervals, count, weight, kind in (
            (window.kernels, kernel_n, member * on_gpu, COMPUTING),
            # Beside a kernel the processor only starts those to come.
            (steps, step_n, member * busy * ~on_gpu * ~copying, COMPUTING),
            (inputs, input_n, member * waits, INPUT),
        ):
            for number, seconds in grid.shared(intervals, weight, count):
                operation = window.names[number]
                if operation.is_python:
                    self._share_python(shares, place, seconds, kind)
                    continue
                owner = self.graphs.charge(operation)
                if kind == INPUT:
                    shares[owner.place, INPUT] += seconds
                    continue
                to = owner.place or place
                shares[to, COMPUTING] += seconds
                if intervals is steps and number in launched:
                    starts[to] += seconds
                if not near:
                    self._note_part(to, owner, operation.kind, seconds)
        waits &= input_n == 0
        for number, seconds in grid.shared(window.stages, member * waits, stage_n):
            shares[self.stage_places.get(number), INPUT] += seconds
        # What lies between two operations is starting the second one; with a GPU it
        # lies between two steps, whose operations begin in any order.
        gaps = member * uncut * idling * ~lull * (not near)
        for following, gap_s in grid.before(steps, gaps * spans):
            begun = window.names[following] if following >= 0 else None
            to = place
            if begun and not launched and not begun.is_python:
                to = self.graphs.charge(begun).place or place
            shares[to, COMPUTING] += gap_s
            starts[to] += gap_s
        of_nothing = member * waits * (stage_n == 0)
        for following, gap_s in grid.before(inputs, of_nothing * spans):
            begun = window.names[following] if following >= 0 else None
            if begun is None:
                shares[place, WAITING] += gap_s
            elif begun.is_python:
                self._share_python(shares, place, gap_s, INPUT)
            else:
                shares[self.graphs.charge(begun).place, INPUT] += gap_s

    def _share_python(
        self, shares: _Shares, place: Place | None, seconds: float, kind: str
    ) -> None:
        """Python that a graph runs is that of the lines seen in other threads."""
        if not self.threads:
            shares[place, INPUT if kind == INPUT else PYTHON] += seconds
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

    def _note_part(
        self, place: Place | None, owner: Charged, type_: str, seconds: float
    ) -> None:
        if place is None:
            return
        row = self.rows[place]
        kind = self.raw["classes"].get(owner.name, "") if owner.part == "layer" else ""
        row.parts[f"{owner.part} {owner.name} {kind}".strip()] += seconds
        row.backward += seconds * owner.backward
        row.types[type_][1] += seconds

    def _note_work(self, window: Window, steps: Intervals) -> None:
        # XLA starts kernels without an operation on the processor: each one counts.
        kernels, runs = window.kernels.numbers.tolist(), steps.numbers.tolist()
        for number, count in {**Counter(kernels), **Counter(runs)}.items():
            operation = window.names[number]
            self.runs[operation] += count
            owner = self.graphs.charge(operation)
            if owner.place:
                row = self.rows[owner.place]
                row.operations += count
                row.types[operation.kind][0] += count
                if owner.part == "optimizer":
                    row.elements = max(row.elements, self.graphs.elements(operation))

    # Samples.

    def _add_samples(self) -> None:
        retraced = self._retraced()
        trained = bool(self.raw["trained_at"])
        sampled_s = max(1.0, self.untraced_s)
        for index, seconds in self.raw["seconds"]:
            place, call, kind, repeats = self.keys[index]
            share = 1.0
            if kind == Kind.PASS_END:
                self.pass_ends_s += seconds
                continue
            if place is None:
                share = float(kind != Kind.IMPORT)
                self.elsewhere_s += share * seconds
            elif (trained and not repeats) or kind == Kind.IMPORT:
                share = 0.0
            elif kind == Kind.TRACED and trained:
                share = retraced.get(place, 0.0)
            elif kind == Kind.SET_UP and self.call_counts.get(place) == 1:
                share = 0.0
            self.once_s += (1 - share) * seconds
            seconds *= share
            if place is None or not seconds:
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
                self.unseen_s += seconds
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
                because = _changed(self.raw["signatures"], name)
                about: dict[str, Any] = {"name": name, "seconds": sum(times)}
                about |= {"count": len(times), "because": because}
                self.rows[place].traces.append(Retraced(**about))
                if definition := self.raw["definitions"].get(name):
                    self.definitions.append([*place, definition])

    def _add_lines_of_causes(self) -> None:
        """Give a row to lines that causes name although their time is on others."""
        raw = self.raw
        iterators = [entry for entry in raw["iterators"] if entry[2] > _FEW_TRACES]
        entries = (*raw["padded"], *raw["models"], *raw["new_models"], *iterators)
        places = [place for _, place in raw["settings"] if place]
        places += (definition for *_, definition in self.definitions)
        for place in (*self.backward, *places, *(entry[:2] for entry in entries)):
            self.rows.setdefault(place, Row())

    def _add_beside(self) -> None:
        """Note the work of the input that delayed no step, of the whole time."""
        waited = [shares for (*_, near), shares in self.shares.items() if not near]
        for place, seconds in self.input_s.items():
            used_s = sum(shares.get((place, INPUT), 0.0) for shares in waited)
            if place and seconds > used_s:
                hidden_s = (seconds - used_s) * self.untraced_s / self.traced_s
                self.rows[place].beside_s += hidden_s

    def _add_stages(self) -> None:
        counts = Counter[tuple[int, str]]()
        for window, _ in self.windows:
            counts.update(window.counts)
        counts.update(self._unfinished({path for _, path in counts}))
        # Elements that came from right below a stage, and the most of any below it.
        below, inside = Counter[str](), Counter[str]()
        # A skip or a shard asks those below it in a way that only sources show.
        skipped = Counter[str]()
        for (_, path), count in counts.items():
            below[path.rpartition("::")[0]] += count
            for outer in above(path, "::"):
                inside[outer] = max(inside[outer], count)
                if not _RESIZES.search(path[len(outer) :]):
                    skipped[outer] = max(skipped[outer], count)
        for (number, path), count in counts.items():
            if number not in self.stage_places or path.endswith("::Root"):
                continue
            place = self.stage_places[number]
            if place:
                # It has a row, although it may take no time itself.
                self.rows.setdefault(place, Row())
            given = below[path] or inside[path]
            if re.search("Skip|Shard", stage_kind(path)):
                given = max(given, skipped[path])
            self.stages.append((place, Stage(path=path, given=given, out=count)))

    def _unfinished(self, paths: set[str]) -> Counter[tuple[int, str]]:
        """Stages that gave nothing in all windows, although those below them did.

        They have no events; a stage is known by its kind if only one line made such.
        """
        lines: dict[str, dict[Place, int]] = defaultdict(dict)
        for number, (place, name) in enumerate(self.raw["stages"]):
            if place:
                kind = name.strip("_").removesuffix("Dataset")
                lines[kind][place] = number
        # Their first two parts are no stages.
        outer = {o for path in paths for o in above(path, "::") if o.count("::") > 1}
        unfinished = Counter[tuple[int, str]]()
        for path in outer - paths:
            # As the class of its dataset is called.
            numbers = lines[_STATES.sub("", stage_kind(path))]
            if len(numbers) == 1:
                unfinished[next(iter(numbers.values())), path] = 0
        return unfinished

    def _as_note(self) -> dict[str, Any]:
        lines = [(place, row.as_line(place)) for place, row in self.rows.items()]
        lines = sorted(lines, key=lambda line: -line[1].total_s)[:_MOST_LINES]
        index = {place: number for number, (place, _) in enumerate(lines)}
        callers = self.graphs.callers.items()
        return {
            "lines": tuple(line for _, line in lines),
            "places": [*index],
            "stages": tuple(
                replace(stage, line=index.get(place, -1) if place else -1)
                for place, stage in self.stages[:_MOST_STAGES]
            ),
            "once_s": self.once_s,
            "elsewhere_s": self.elsewhere_s,
            "pass_ends_s": self.pass_ends_s,
            "traced_s": self.traced_s,
            "backward": [[*place, count] for place, count in self.backward.items()],
            "definitions": self.definitions,
            "callers": [[*at, calls.most_common(1)[0][0]] for at, calls in callers],
            **{name: self.raw[name] for name in _AS_SEEN},
            "untraced": self.raw["untraced"] or self._unseen(),
        }

    def _unseen(self) -> str:
        """What to say where most steps are in no window."""
        seconds = sum(sum(row.seconds.values()) for row in self.rows.values())
        return _UNSEEN if self.unseen_s > seconds / 2 else ""


def _changed(signatures: Sequence[Any], name: str) -> tuple[str, ...]:
    """Return a few changes of arguments between traces of a function."""
    traces = [arguments for function, arguments in signatures if function == name]
    changes = (
        f"{argument}: {before.get(argument)}, then {words}"
        for before, after in itertools.pairwise(traces)
        for argument, words in after.items()
        if before.get(argument) != words
    )
    return tuple(dict.fromkeys(changes))[:_MOST_CHANGES]
