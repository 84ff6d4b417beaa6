"""What a budget is spent on, from what the first look saw of set-up and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.measure import spending

if TYPE_CHECKING:
    from perfkit.diagnosis.facts import Facts

# A turn in the process that looks lasts so long, or so many steps; of long ones fewer,
# once a turn is so long.
_TURN_S, _STEPS, _FEWEST_STEPS, _LONG_TURN_S = 0.8, 5, 3, 1.5
# Its first step, a new iterator and the ends of epochs come on top of it.
_AROUND = 1.6
# Turns that tell which group holds a training up, and which change of it does.
_TURNS = 24
# Variants of a round in fresh processes: as given, and the two best.
_CONFIRMED = 3
# What a trial takes besides its first step until it is steady.
WARM_UP_S = 1.0
# Rounds that a loop of the user's own needs, all of them in fresh processes.
_LOOP_ROUNDS = 5
# Confirming may take this share of what is left after the first look; where a setting
# was seen that only a fresh process can leave off, so much that one round fits.
_MOST_OF_IT, _SEEN_SHARE = 0.4, 0.6
_SHORTEST_S, LONGEST_S = 90.0, 600.0
# What was planned, among the facts of a diagnosis.
PLAN = "planned"


@dataclass(frozen=True)
class Planned:
    """How a budget is spent.

    Attributes:
        budget_s: Seconds of all of it, the first look included.
        turns_s: Seconds of turns in one process.
        fresh_s: Seconds of rounds in fresh processes; 0.0 where none fits.
    """

    budget_s: float
    turns_s: float
    fresh_s: float


def turn_s(step_s: float) -> float:
    """Seconds of a turn in the process that looks, from when it is ready."""
    if not step_s > 0:
        return _TURN_S
    steps = min(_STEPS, max(_FEWEST_STEPS, int(_LONG_TURN_S / step_s)))
    return max(_TURN_S, steps * step_s)


def trial_s(ready_s: float, step_s: float) -> float:
    """Seconds of a trial in a fresh process, which is set up anew.

    Args:
        ready_s: Until it is ready, about.
        step_s: Of a step, about.
    """
    return ready_s + WARM_UP_S + spending.chosen_s(step_s)


def round_s(facts: Facts) -> float:
    """Seconds of a round in fresh processes."""
    return _CONFIRMED * trial_s(facts.ready_s, facts.step_s)


def planned(facts: Facts, spent_s: float, budget: float | None) -> Planned:
    """Plan what is left.

    Args:
        facts: What the first look saw.
        spent_s: Seconds until then.
        budget: Seconds for all of it; None for what it needs, at most ten minutes.
    """
    turns_s, fresh_s = _TURNS * _AROUND * turn_s(facts.step_s), round_s(facts)
    if budget is None:
        needed = spent_s + turns_s + 2 * fresh_s
        budget = min(LONGEST_S, max(_SHORTEST_S, needed))
    left = max(0.0, budget - spent_s)
    kept = min(2 * fresh_s, _MOST_OF_IT * left)
    if kept < fresh_s:
        # Half a round claims nothing that the turns do not show.
        pair_s = 2 * trial_s(facts.ready_s, facts.step_s)
        kept = pair_s if facts.settings and pair_s <= _SEEN_SHARE * left else 0.0
    return Planned(budget, left - kept, kept)


def without_turns_s(facts: Facts) -> float:
    """Seconds that a training needs in which nothing takes turns: a loop of its own."""
    return min(
        LONGEST_S, max(_SHORTEST_S, facts.ready_s + _LOOP_ROUNDS * round_s(facts))
    )


def in_words(facts: Facts, plan: Planned) -> str:
    """The plan in a sentence or two."""
    step, first = units.seconds(facts.step_s), 4 * _AROUND * turn_s(facts.step_s)
    said = (
        f"A step takes about {step}, and setting up {units.seconds(facts.ready_s)}: "
        f"which part holds the training up shows after {units.seconds(first)} more"
    )
    if not plan.fresh_s:
        again = units.seconds(plan.budget_s + 2 * round_s(facts))
        return f"{said}. To confirm it in fresh processes, give --budget {again}."
    return f"{said}, and what helps is confirmed in fresh processes afterwards."
