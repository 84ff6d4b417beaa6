"""What a run is to do, what it tells, and how its budget is spent."""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.spread import Spread
from perfkit.engine.trial import Limits, Trial

if TYPE_CHECKING:
    from perfkit.engine.launcher import Started
    from perfkit.engine.live import Opening

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
        baseline: The one that the others are held against.
        budget: Seconds to spend on rounds.
        seed: Of the order and of the trials' random numbers.
        prepare: Makes what every variant needs; its time is not in the budget.
        in_turns: Whether the trials of a round may take turns.
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
        least_rounds: As of ``Measurement``.
        ready_s: Seconds until the baseline was ready where it has been run before; 0.0
            where nobody knows. What takes several times as long is taken to hang.
    """

    variants: tuple[Variant, ...]
    baseline: str
    budget: float
    seed: int = 0
    prepare: Callable[[], Iterator[Any]] | None = None
    in_turns: bool = True
    tries: Callable[[Measurement], Tries] | None = None
    overrun: float = 2.0
    choose: Callable[[Measurement], tuple[Variant, ...]] | None = None
    usual: float | None = None
    answered: Callable[[Measurement], bool] | None = None
    opening: "Opening | None" = None
    spread: Spread = field(default_factory=Spread)
    twice: bool = True
    runs: int = 0
    least_rounds: int = 1
    ready_s: float = 0.0


# A turn is long enough for a few ticks and short against what disturbs a machine.
TURN_S = 0.15
_TICKS_A_TURN = 5
# Long ticks waver less: fewer of them do, once a turn is so long.
_FEWEST_TICKS, _LONG_TURN_S = 3, 1.5
# Where variants are chosen a trial works about so long in all its turns.
_CHOSEN_S = 2.0
# Trials in one go work this long, or up to so long where their ticks take long.
ONE_GO_S = 1.5
_LONGEST_ONE_GO_S = 5.0
# Less than so long shows no rate. Where the budget holds fewer rounds than this of the
# usual length, they are made shorter: two short visits say more than a long one.
_SHORTEST_ONE_GO_S, _VISITS = 0.5, 2
# Warm-up ends when the ticks look settled, or after so many seconds.
SHORTEST_WARM_UP_S = 0.3
_LONGEST_WARM_UP_S = 3.0
# Fewer rounds say little of how processes differ, more of them cost their set-up, which
# may take this share of the budget.
_ROUNDS = (3, 8)
_SET_UP_SHARE = 0.4
_FEWEST_TURNS = 2
# The same, with the ticks that end a little later than a turn was to end.
FEWEST_TURNS = _FEWEST_TURNS + 0.1
# A long budget makes more rounds, not longer ones, so that it can end early.
_LONGEST_ROUND_S = 12.0
# Of a run that may end once its answer is known: short rounds bring that sooner.
_EARLY_SET_UP_SHARE = 0.6
# An interval this narrow needs no more rounds, if there have been a few.
_NARROW = 0.025
# What overruns the budget by this factor is cut.
OVERRUN = 1.05


def turns(
    budget: float, left_s: float, set_up: float, a_turn: float, *, early: bool = False
) -> int:
    """How many turns each trial of a round gets, at least 1.

    Of the budget there are ``left_s`` seconds left. The round spent ``set_up`` of them
    before its first turn, and one of each trial takes ``a_turn``. A run that may end
    ``early`` has shorter rounds.
    """
    min_rounds, max_rounds = _ROUNDS
    rounds = int(budget * _SET_UP_SHARE / max(set_up, 1e-3))
    round_s = budget / min(max_rounds, max(min_rounds, rounds))
    round_s = min(round_s, max(_LONGEST_ROUND_S, set_up / _SET_UP_SHARE))
    if early:
        round_s = min(round_s, set_up / _EARLY_SET_UP_SHARE)
    turn_count = max(_FEWEST_TURNS, int((round_s - set_up) / a_turn))
    fitting = int(left_s / a_turn)
    # A rest that is too short for a round of its own is spent on this one.
    if fitting - turn_count < set_up / a_turn + _FEWEST_TURNS:
        turn_count = fitting
    return max(1, min(turn_count, fitting))


def turn_s(tick_s: float, least_s: float = TURN_S) -> float:
    """Seconds of a turn of ticks that usually take so long."""
    if not tick_s > 0:
        return least_s
    ticks = min(_TICKS_A_TURN, max(_FEWEST_TICKS, int(_LONG_TURN_S / tick_s)))
    return max(least_s, ticks * tick_s)


def turns_of_a_choice(left_s: float, turns_s: Sequence[float]) -> int:
    """How many turns each trial gets in a round whose variants are chosen, at least 1.

    Such a run learns from each round which variants the next one needs, so rounds are
    short and many. A turn of each trial takes ``turns_s``, of ``left_s`` seconds left.
    """
    turn_count = max(_FEWEST_TURNS, round(_CHOSEN_S * len(turns_s) / sum(turns_s)))
    return max(1, min(turn_count, int(left_s / sum(turns_s))))


def chosen_s(tick_s: float) -> float:
    """Seconds that a trial with such ticks works in all its turns of such a round."""
    return max(_CHOSEN_S, _FEWEST_TURNS * turn_s(tick_s))


def one_go_s(tick_s: float, budget: float = math.inf, variants: int = 1) -> float:
    """Seconds that a trial in one go, with such ticks, works after its first call."""
    usual = min(ONE_GO_S, max(_SHORTEST_ONE_GO_S, budget / (_VISITS * variants)))
    return max(usual, min(_LONGEST_ONE_GO_S, 2 * _TICKS_A_TURN * tick_s))


def longest_warm_up_s(budget: float, variants: int, *, choice: bool = False) -> float:
    """Seconds after which a trial that never settles is measured as it is.

    Where the variants of each round are chosen, trials warm up before they are ready.
    """
    if choice:
        return 2 * SHORTEST_WARM_UP_S
    return max(SHORTEST_WARM_UP_S, min(_LONGEST_WARM_UP_S, budget / (4 * variants)))


def shortest_round_s(
    names: Sequence[str], trials: Sequence[Trial], *, in_turns: bool
) -> float:
    """Seconds that the shortest useful round of these takes, as far as trials show."""
    last = {trial.variant: trial.setup_s or 0.0 for trial in trials}
    set_up = sum(last.get(name, 0.0) for name in names)
    trial_s = SHORTEST_WARM_UP_S + _FEWEST_TURNS * TURN_S if in_turns else ONE_GO_S
    return set_up + len(names) * trial_s


def _unclear(measured: Measurement, variants: Mapping[str, Variant]) -> set[str]:
    """The variants whose comparison another round would make clearer."""
    compared = {c.variant: c for c in measured.comparisons}
    control = measured.compare(CONTROL, measured.baseline)
    compared |= {CONTROL: control} if control else {}
    return {
        name
        for name, variant in variants.items()
        if (name == CONTROL or variant.against not in ("", name))
        and (name not in compared or compared[name].half_width > _NARROW)
    }


def next_variants(
    rounds: int, measured: Measurement, variants: Mapping[str, Variant]
) -> list[str]:
    """Which variants come after so many rounds: all twice, then what is still unclear.

    None where another round would add nothing worth its time.
    """
    unclear = _unclear(measured, variants)
    if not unclear and rounds >= _ROUNDS[0]:
        return []
    if rounds < 2 or not unclear:
        return list(variants)
    against = {variants[name].against for name in unclear}
    # What is compared with nothing is there for its rate, which every round narrows.
    return [
        name
        for name, variant in variants.items()
        if name in unclear | against or (name != CONTROL and not variant.against)
    ]
