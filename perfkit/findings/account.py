"""An account: where the seconds of a script go, by line, and what helps."""

import re
from dataclasses import dataclass, field
from typing import Literal

from perfkit.findings.record import Answer
from perfkit.findings.text import place_in_words

# What a second went into. What no line explains is ``elsewhere``.
COMPUTING, INPUT, PYTHON, SET_UP, WAITING = KINDS = (
    *("computing", "input", "Python", "set-up", "waiting"),
)
# What a line is part of beside the parts of a model.
THREAD, COPYING = "Python of another thread", "copying to the GPU"
# A line that is named takes this share of what repeats at least.
HOT = 0.08
# So many are named.
MOST_HOT = 6
# After so many ends of each the memory is read; what holds the others comes first.
READ_EVERY = {"fit": 1, "epoch": 1, "pass": 1, "predict": 10, "train_on_batch": 100}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A public function that a line called: how often, and the seconds of all calls.

    ``count`` is 0 where nobody counted.
    """

    name: str
    count: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Retraced:
    """A function that a line had traced again and again.

    Attributes:
        seconds: All traces together.
        because: What differed from one trace to the next, such as ``"x: float32[32, 8],
            then float32[16, 8]"``; empty where nothing did.
    """

    name: str
    count: int
    seconds: float
    because: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one line of the user's own code takes.

    Attributes:
        file: Its name as seen from the script's folder; "" for a cell.
        cell: Of a notebook: which cell of code, from 1, and ``line`` counts in it.
        line: From 1.
        code: The line; "" where the source was left out.
        seconds: Of the thread that trains, by kind (``KINDS``).
        calls: Public functions that it called, the most expensive first.
        operations: Of a graph that are run for it, in each update of the weights.
        types: Of these the most expensive: type, and how many.
        parts: What they are part of: ``"layer dense"``, ``"optimizer adam"``.
        backward: Share of its computing that is the backward pass.
        starting_s: Seconds of its computing in which operations were only started.
        eager_s: Seconds of its computing outside of any graph.
        beside_s: Seconds of the input's work that no step waited for, in no share.
        traces: What it had traced again and again.
        elements: Of the largest result of an optimizer's operation.
    """

    file: str
    cell: int = 0
    line: int
    code: str = ""
    seconds: dict[str, float]
    calls: tuple[Call, ...] = ()
    operations: float = 0.0
    types: tuple[tuple[str, float], ...] = ()
    parts: tuple[str, ...] = ()
    backward: float = 0.0
    starting_s: float = 0.0
    eager_s: float = 0.0
    beside_s: float = 0.0
    traces: tuple[Retraced, ...] = ()
    elements: int = 0

    @property
    def total_s(self) -> float:
        """Seconds of all kinds."""
        return sum(self.seconds.values())

    def spent(self, *kinds: str) -> float:
        """Seconds of these kinds."""
        return sum(self.seconds.get(kind, 0.0) for kind in kinds)

    @property
    def is_eager(self) -> bool:
        """Whether much of it is computed outside of any graph."""
        return self.eager_s > self.total_s / 4

    @property
    def kind(self) -> str:
        """What most of its seconds went into."""
        return max(self.seconds, key=self.seconds.__getitem__, default=PYTHON)

    @property
    def where(self) -> str:
        """The place in words, such as ``"train.py, line 12"``."""
        return place_in_words(self.file, self.cell, f"line {self.line}")

    def find_call(self, *names: str) -> Call | None:
        """The most expensive call of one of these names; None for none."""
        return next((call for call in self.calls if call.name in names), None)

    def is_part(self, kind: str) -> bool:
        """Whether most of what it computes is of this kind, such as ``"layer"``."""
        return bool(self.parts) and self.parts[0].split(" ")[0] == kind


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of a pipeline of ``tf.data``, in the traced seconds.

    Attributes:
        path: Where it stands, the last stage first, such as
            ``"Iterator::Root::Prefetch::BatchV2::ParallelMapV2"``.
        line: Index of its line in the account; -1 for none.
        given: Elements that it took.
        out: Elements that it gave.
    """

    path: str
    line: int = -1
    given: int = 0
    out: int = 0

    @property
    def kind(self) -> str:
        """As TensorFlow ran it, without its version: ``"ParallelMap"``."""
        return stage_kind(self.path)


def stage_kind(path: str) -> str:
    """What the innermost stage of a path is, without its version and number."""
    return re.sub(r"(V\d+)?(\[\d+\])?$", "", path.rpartition("::")[2])


@dataclass(frozen=True, kw_only=True)
class Tip:
    """What people do about what was seen on a line; nothing has proved it here.

    Attributes:
        cause: Its name, such as ``"predict-per-row"``.
        lines: Indices of the lines it is about, the first at fault first.
        share: Of what repeats that these lines take.
        do: An imperative without its full stop.
        means: What was seen, in a sentence.
        fix: The lines to type.
        mind: What doing so may cost, in a sentence; "" for nothing.
        group: The change of a diagnosis that leaves all of it out, such as ``"without
            input"``: what that cannot bring, this cannot; "" for none.
    """

    cause: str
    lines: tuple[int, ...]
    share: float
    do: str
    means: str
    fix: str = ""
    mind: str = ""
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """What something that a training repeats adds to memory and does not give back.

    Attributes:
        unit: What ends, of ``READ_EVERY``.
        each_bytes: That every ``READ_EVERY`` ends add; its 95 % interval is from
            ``low`` to ``high``.
        ends: How often so many ended.
        kept: ``"models"`` or ``"traces"`` where a line makes those as often.
        line: Index of that line, or of the one that calls the unit; -1 for none.
    """

    unit: Literal["fit", "epoch", "pass", "predict", "train_on_batch"]
    each_bytes: float
    low: float
    high: float
    ends: int
    kept: Literal["models", "traces", ""] = ""
    line: int = -1


@dataclass(frozen=True, kw_only=True, repr=False)
class Account(Answer):
    """Where the seconds of a script went, by line, in the time that it was looked at.

    Attributes:
        training: What it is called.
        recorded: When it began, ISO 8601 with the offset from UTC.
        wall_s: Seconds that it was looked at.
        once_s: Of these what was done once: imports, reading data, the first trace.
        elsewhere_s: Of what repeats the seconds that no line explains.
        pass_ends_s: Seconds in which iterators of ``tf.data`` ended, in no share: they
            wait for its autotuner, more often than when nothing watches.
        looking_s: Seconds that went into looking: traced windows, tracing's records.
        traced_s: Seconds of all windows.
        sampling_s: Seconds that the sampler took besides.
        samples: How many were taken.
        updates: Of the weights, as far as they were counted.
        ended: Whether the script came to its end.
        error: What ended it, a sentence; "" for nothing.
        untraced: Why operations are on no lines; "" where they are.
        uncontained: Who refused what, in sentences; "" where it was sealed.
        lines: The most expensive first.
        stages: Of the input.
        epochs_s: Seconds of each epoch that ended.
        growth: What it adds to memory; None where no growth is shown.
        tips: What people do about it, the largest share first.
        text: Lines around the hot ones, by file (and cell), then by number.
        code: A digest of the script.
    """

    schema: Literal[1] = 1
    kind: Literal["account"] = "account"
    training: str
    wall_s: float
    once_s: float = 0.0
    elsewhere_s: float = 0.0
    pass_ends_s: float = 0.0
    looking_s: float = 0.0
    traced_s: float = 0.0
    sampling_s: float = 0.0
    samples: int = 0
    updates: int = 0
    ended: bool = False
    error: str = ""
    untraced: str = ""
    uncontained: str = ""
    lines: tuple[Line, ...] = ()
    stages: tuple[Stage, ...] = ()
    epochs_s: tuple[float, ...] = ()
    growth: Growth | None = None
    tips: tuple[Tip, ...] = ()
    text: dict[str, dict[str, str]] = field(default_factory=dict)
    code: str = ""
    stopped: bool = False

    @property
    def repeated_s(self) -> float:
        """Seconds of what repeats, which shares are of."""
        return sum(line.total_s for line in self.lines) + self.elsewhere_s

    def share(self, seconds: float) -> float:
        """Seconds as a share of what repeats."""
        total_s = self.repeated_s
        return seconds / total_s if total_s > 0 else 0.0

    @property
    def hot(self) -> tuple[Line, ...]:
        """The lines that take most."""
        lines = [line for line in self.lines if self.share(line.total_s) >= HOT]
        return tuple(lines[:MOST_HOT])

    @property
    def kinds(self) -> dict[str, float]:
        """Seconds of what repeats, by kind."""
        return {kind: sum(line.spent(kind) for line in self.lines) for kind in KINDS}
