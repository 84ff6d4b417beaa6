"""How a budget is spent: how many rounds, how many turns in each, of what."""

import math
from collections.abc import Mapping, Sequence

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.trial import Trial

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
# A long budget makes more rounds, not longer ones, so that it can end early.
_LONGEST_ROUND_S = 12.0
# Of a run that may end once its answer is known: short rounds bring that sooner.
_EARLY_SET_UP_SHARE = 0.6
# An interval this narrow needs no more rounds, if there have been a few.
_NARROW = 0.025
# What overruns the budget by this factor is cut.
_OVERRUN = 1.05


def turns(
    budget: float, left_s: float, set_up: float, a_turn: float, *, early: bool = False
) -> int:
    """How many turns each trial of a round gets, at least 1.

    Args:
        budget: Seconds of the whole run.
        left_s: Seconds of it that are left.
        set_up: Seconds that this round spent before its first turn.
        a_turn: Seconds that one turn of every trial takes.
        early: Whether the run may end as soon as its answer is known.
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


def fewest_s(a_turn: float) -> float:
    """Seconds of the fewest turns that show how turns differ, each of so many."""
    # With the ticks that end a little later than a turn was to end.
    return (_FEWEST_TURNS + 0.1) * a_turn


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


def runs_s(names: Sequence[str], trials: Sequence[Trial], baseline: str) -> float:
    """Seconds that a run of each of these takes, as the last ones did."""
    last = {trial.variant: trial.wall_s for trial in trials}
    return sum(last.get(baseline if n == CONTROL else n, 0.0) for n in names)


def overrun_s(budget: float, round: int, first: float) -> float:
    """Seconds after which even a running trial is cut; in round 1 ``first`` budgets."""
    return budget * (first if round == 1 else _OVERRUN)


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
