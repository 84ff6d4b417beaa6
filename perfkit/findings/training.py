"""A reference training: the same job on every machine, and its step taken apart."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from perfkit import units
from perfkit.engine.trial import Trial

PartName = Literal["input", "dispatch", "transfer", "compute", "unexplained"]
# In the order in which a step goes through them; the rest comes last.
PARTS: Final[tuple[PartName, ...]] = get_args(PartName)
UNEXPLAINED: Final = PARTS[-1]
# What to do about a part that holds most of a step.
NEXT_STEPS = {
    "input": "`perfkit run data-pipeline` says which input pipeline is fastest.",
    "dispatch": "`perfkit run execution-mode` says what several steps per call bring.",
    "transfer": "`perfkit doctor` says whether the link to the GPU is held back.",
}
_PRECISIONS = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
# No clock tells less.
_LEAST_S = 1e-9


@dataclass(frozen=True, kw_only=True)
class Part:
    """Seconds of a training's step that one thing takes.

    Attributes:
        name: Which thing.
        seconds: Per step; below 0 where the change made the step slower, which noise
            may do, or where things overlap. None where it was not measured.
        low: Lower end of the 95 % interval of ``seconds``; ``high`` is the upper end.
            It comes from rounds in which both met the same moments of the machine: it
            is that of the part's share, at the usual length of a step.
        how: By which change it was measured, or why it is 0 or None, in a sentence.
    """

    name: PartName
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class Training:
    """One reference training on one machine.

    Attributes:
        name: Such as ``"small CNN from JPEG"``.
        what: It in a line.
        dtype: ``"float32"``, or a mixed precision as Keras names it.
        job: What has to be equal for two machines to have done the same: the network,
            the data, how they are fed, the seed and the number of the recipe.
        batch: Examples in a step.
        weights: Numbers that are learnt; None where no trial told.
        seconds: Per step, steadily; None where it was not measured.
        low: Lower end of the 95 % interval of ``seconds``; ``high`` is the upper end.
        trials: How many trials that rests on.
        parts: The split of ``seconds``, in the order of ``PARTS``; () where there is
            none.
        device: Where the step computed, such as ``"CPU:0"``; "" if unknown.
        missing: Why it was not measured, in a sentence; "" where it was.
    """

    name: str
    what: str = ""
    dtype: str = "float32"
    job: dict[str, str | int] = field(default_factory=dict)
    batch: int
    weights: int | None = None
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    trials: int = 0
    parts: tuple[Part, ...] = ()
    device: str = ""
    missing: str = ""

    @property
    def title(self) -> str:
        """Its name, with its precision where that is not float32."""
        if self.dtype == "float32":
            return self.name
        return f"{self.name}, {_PRECISIONS.get(self.dtype, self.dtype)}"

    @property
    def rate(self) -> float | None:
        """Examples per second; None where it was not measured."""
        return self.batch / self.seconds if self.seconds else None


def why_missing(trials: Iterable[Trial]) -> str:
    """Why trials that gave no rate gave none, in a sentence."""
    ended = ("completed", "stopped")
    failed = [t.message for t in trials if t.message and t.outcome not in ended]
    return f"It {failed[-1].rstrip('.')}." if failed else "The run ended too early."


def seconds_between(timing: Training | Part) -> str:
    """As ``"1.2 ms (1.1 ms to 1.3 ms)"``, or that it was not measured."""
    low, high = timing.low, timing.high
    if timing.seconds is None or low is None or high is None or low == high:
        return seconds(timing.seconds)
    return units.between(timing.seconds, low, high, seconds)


def seconds(value: float | None) -> str:
    """Seconds as text; less than a clock can tell is 0."""
    if value is None:
        return "not measured"
    return units.seconds(value if abs(value) >= _LEAST_S else 0.0)
