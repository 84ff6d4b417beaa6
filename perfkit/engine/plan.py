"""What a run is to do, what it tells, and what starts its trials."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.spread import Spread
from perfkit.engine.trial import Limits, Trial

if TYPE_CHECKING:
    from perfkit.engine.launcher import Started
    from perfkit.engine.one_process import Opening


# The seconds that all tries of a run may take: a share of its budget, and never less
# than a handful of short ones needs.
_SHARE = 0.5
_LEAST_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Try:
    """One trial outside the rounds.

    Attributes:
        name: What it answers, such as ``"fits 512?"``; its trial's ``variant``.
        work: Makes the generator that does the work; called in a fresh process.
        memory: Bytes that it may allocate above what it starts with; None for no limit.
        seconds: After so many, counted from when it is ready, it has worked long enough
            and is ended as completed; None where it ends by itself.
    """

    name: str
    work: Callable[[], Iterator[Any]]
    memory: int | None = None
    seconds: float | None = None


Tries = Generator[Try, Trial, None]


def seconds_for(budget: float) -> float:
    """Seconds that the tries of a run may take together, on top of its budget."""
    return max(_LEAST_S, _SHARE * budget)


def following(asking: Tries, ended: Trial | None) -> Try | None:
    """What is to be tried next; None where there is nothing more.

    Args:
        asking: The tries, under way.
        ended: What came of the last one; None before the first.
    """
    try:
        return next(asking) if ended is None else asking.send(ended)
    except StopIteration:
        return None


@dataclass(frozen=True)
class Preparing:
    """Something is made ready before the first trial; the budget has not begun.

    Attributes:
        message: What is done, in a few words.
        waiting: Whether nothing is done because another run has to end first.
    """

    message: str
    waiting: bool = False


@dataclass(frozen=True)
class Prepared:
    """All is ready; what preparing found out, as the finding's notes have it."""

    notes: dict[str, Any]


@dataclass(frozen=True)
class TrialStarted:
    """A trial begins, ``at`` seconds after the start of the run."""

    variant: str
    round: int
    at: float


@dataclass(frozen=True)
class Ticked:
    """New ticks of the running trial: ``(seconds since the run's start, examples)``.

    An entry of 0 examples ends set-up or a pause: no rate can be read from the time
    before it.
    """

    variant: str
    ticks: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Sampled:
    """One reading of the machine, by the names that ``Finding.samples`` has."""

    values: dict[str, float | None]


@dataclass(frozen=True)
class TrialEnded:
    """A trial is over; the measurement holds it."""

    trial: Trial
    measurement: Measurement


@dataclass(frozen=True)
class Progress:
    """Seconds of the budget spent and the seconds the run will take as it looks now."""

    spent: float
    expected: float


@dataclass(frozen=True)
class Foreseen:
    """Something that the run will not do as it looks now, and what to do about it."""

    message: str


@dataclass(frozen=True)
class Finished:
    """The run is over, by its budget, by narrow intervals or by Stop."""

    measurement: Measurement
    stopped: bool


Event = (
    Preparing
    | Prepared
    | TrialStarted
    | Ticked
    | Sampled
    | TrialEnded
    | Progress
    | Foreseen
    | Finished
)


class Starter(Protocol):
    """What starts trials: the launcher, or a test's script."""

    def wait(self, timeout: float) -> bool:
        """Wait until trials can start; False if that takes longer."""

    def start(
        self, work: Callable[[], Iterator[Any]], seed: int, limits: Limits
    ) -> "Started":
        """Start one."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do.

    Attributes:
        variants: The variants.
        baseline: The one that the others are held against.
        budget: Seconds to spend on rounds.
        seed: Of the order and of the trials' random numbers.
        prepare: Makes what every variant needs; its time is not in the budget.
        in_turns: Whether the trials of a round may take turns.
        memory: Bytes that each trial may allocate; None for no limit.
        tries: What to try after the rounds, in time of its own; None for nothing.
        overrun: Times the budget that the first round may take, because without it
            there is no answer at all.
        choose: Names the variants of the next round from what has been measured, none
            to end; it may add new ones. None leaves the choice to how narrow
            the intervals are.
        usual: Seconds after which it mostly ends, tries included; None for the budget.
        answered: Says from what has been measured whether the run may end before its
            budget does; None where it is to be spent.
        opening: A process at work whose variants are the first round; its time counts
            from when it was started. None where all rounds are of fresh processes.
        spread: What is known of the machine's spread; kept in the run's notes.
        twice: Whether the baseline is run twice a round, to know the noise.
        runs: Where each trial is a run that ends by itself: how many of each are
            wanted. Where the budget holds fewer with the control, that is left out. 0
            for trials that are ended once they have shown their rate.
        ready_s: Seconds until the baseline was ready where it has been run before; 0.0
            where nobody knows. What takes several times as long is taken to hang.
    """

    variants: tuple[Variant, ...]
    baseline: str
    budget: float
    seed: int = 0
    prepare: Callable[[], Iterator[Any]] | None = None
    in_turns: bool = True
    memory: int | None = None
    tries: Callable[[Measurement], Tries] | None = None
    overrun: float = 2.0
    choose: Callable[[Measurement], tuple[Variant, ...]] | None = None
    usual: float | None = None
    answered: Callable[[Measurement], bool] | None = None
    opening: "Opening | None" = None
    spread: Spread = field(default_factory=Spread)
    twice: bool = True
    runs: int = 0
    ready_s: float = 0.0
