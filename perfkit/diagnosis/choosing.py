"""Which swaps the next round measures: all that apply, then those that may bring much.

All are measured twice, or once where they plainly bring nothing; the rest of the budget
goes to those that may be worth a change. Near its end the best are measured together.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from perfkit.measure import spending
from perfkit.measure.measurement import TWIN, Arm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from perfkit.diagnosis.swap import Swap
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.tick import Yielded
    from perfkit.measure.trial import Trial

AS_GIVEN = "as given"
TOGETHER = "together"
# The least gain that is worth claiming.
CLAIMED = 1.05
# A single round may be wrong by this much; what is worse brings nothing. What waited
# for another swap to help gets a second chance more easily.
_HOPELESS, _LIKELY = 0.97, 0.85
# Of the budget, after which what was found is measured together.
_TOGETHER_AFTER = 0.55
# Making the trials of a round ready may take this share of the budget; what a trial
# takes besides its first step until it is steady.
_SET_UP_SHARE = 0.3
_WARM_UP_S = 1.0
# The training as given and its twin are in every round.
_ALWAYS = 2
_NARROW = 0.03
_ENOUGH_ROUNDS = 3
# So often is tried what ends without a rate.
_TRIED = 2
# Which come first, by the rounds they have been in.
_ORDER = {1: 0, 0: 1}
_FEWEST_ROUNDS = 2


class Choosing:
    """Chooses the arms of a round from what the rounds before have shown.

    Args:
        swaps: All that apply.
        work: Makes the work of the training with some swaps applied.
        budget: Seconds of the rounds.
        ready_s: Seconds until a trial is ready, about.
        step_s: Seconds of a step, about.

    Attributes:
        together: What is applied together; empty until that is measured.
    """

    def __init__(
        self,
        swaps: Sequence[Swap],
        work: Callable[[Sequence[Swap]], Callable[[], Iterator[Yielded]]],
        budget: float,
        ready_s: float,
        step_s: float = 0.0,
    ) -> None:
        self._swaps, self._work, self._budget = swaps, work, budget
        until_s = ready_s + _WARM_UP_S
        # One round claims nothing, so that no more are begun than two rounds can hold.
        twice = budget / _FEWEST_ROUNDS / (until_s + spending.chosen_s(step_s))
        most = int(min(_SET_UP_SHARE * budget / until_s, twice))
        self._most = max(1, most - _ALWAYS)
        self.together: tuple[Swap, ...] = ()

    def __call__(self, measured: Measurement) -> tuple[Arm, ...]:
        """Name the arms of the next round; none where nothing is left to learn."""
        if _cannot_run(measured):
            return ()
        most = min(self._most, _fitting(measured, self._budget))
        wanted = [swap for swap in self._swaps if self._wanted(swap, measured)]
        # What was seen once may be claimed after one round more; then comes the new.
        # Of that, what waited for a swap that did bring something is the likeliest.
        wanted.sort(
            key=lambda swap: (
                _ORDER.get(_rounds(measured, swap.name), 2),
                not swap.after,
                # What shows first whether a whole group of swaps is worth a try.
                not swap.ceiling or bool(_rounds(measured, swap.name)),
                -_ratio(measured, swap.name),
            )
        )
        together = list(self._together(measured))
        apart = wanted[: max(1, most - len(together))]
        arms = [*(self.arm(swap) for swap in apart), *together]
        if not arms:
            # One round claims nothing, not even that a swap brings nothing.
            once = [s for s in self._swaps if _rounds(measured, s.name) == 1]
            arms = [self.arm(swap) for swap in once[:most]]
        return (self.given, *arms) if arms else ()

    @property
    def given(self) -> Arm:
        """The training as given."""
        return Arm(AS_GIVEN, self._work(()), "The training as it was handed over.")

    def arm(self, swap: Swap) -> Arm:
        """The training with one thing swapped."""
        return Arm(
            swap.name,
            self._work((swap,)),
            swap.changes,
            AS_GIVEN,
            own_pauses=swap.own_pauses,
            other_pauses=swap.ceiling,
        )

    def _wanted(self, swap: Swap, measured: Measurement) -> bool:
        # Too much hangs on the ceiling for one unlucky round to decide.
        if swap.ceiling and _rounds(measured, swap.name) < _FEWEST_ROUNDS:
            return True
        if not _known(measured, swap.name):
            return not swap.after or may_help(measured, swap.after)
        hopeless = _LIKELY if swap.after else _HOPELESS
        helps = may_help(measured, swap.name, hopeless)
        return helps and not _clear(measured, swap.name)

    def _together(self, measured: Measurement) -> Iterator[Arm]:
        if (
            not self.together
            and _spent_s(measured.trials) > _TOGETHER_AFTER * self._budget
        ):
            found = combined(self._swaps, measured)
            self.together = found if len(found) > 1 else ()
        if self.together and not _clear(measured, TOGETHER):
            names = ", ".join(f'"{swap.name}"' for swap in self.together)
            work = self._work(self.together)
            own = any(swap.own_pauses for swap in self.together)
            changes = f"All at once: {names}."
            yield Arm(TOGETHER, work, changes, AS_GIVEN, own_pauses=own)


class Applying(Choosing):
    """Measures all swaps at once against the training as given, and nothing else."""

    def __call__(self, measured: Measurement) -> tuple[Arm, ...]:
        """Name the arms of the next round; none where the answer is narrow enough."""
        if len(self._swaps) > 1:
            self.together = tuple(self._swaps)
            arms = list(self._together(measured))
        else:
            arms = [self.arm(s) for s in self._swaps if not _clear(measured, s.name)]
        return (self.given, *arms) if arms else ()


def may_help(measured: Measurement, name: str, hopeless: float = _HOPELESS) -> bool:
    """Whether a swap may yet turn out to bring something worth claiming.

    Args:
        measured: What was measured so far.
        name: Of the swap.
        hopeless: The ratio below which a single round settles it.
    """
    compared = measured.compare(name, AS_GIVEN)
    if compared is None:
        return False
    if compared.rounds == 1:
        return compared.ratio > hopeless
    return compared.high > CLAIMED


def combined(swaps: Sequence[Swap], measured: Measurement) -> tuple[Swap, ...]:
    """What is worth applying together: the best of each cause that helps."""
    best: dict[str, tuple[float, Swap]] = {}
    for swap in swaps:
        compared = measured.compare(swap.name, AS_GIVEN)
        if compared is None or swap.ceiling or not swap.combines:
            continue
        # Each callback is a thing of its own; of two ways to read one is taken.
        key = swap.name if swap.cause == "callback" else swap.cause
        helps = compared.low > 1 and compared.rounds > 1
        if helps and compared.ratio > best.get(key, (CLAIMED,))[0]:
            best[key] = compared.ratio, swap
    return tuple(swap for _, swap in best.values())


def unmeasured(swaps: Sequence[Swap], measured: Measurement) -> tuple[str, ...]:
    """Name the swaps that may help for all that is known: no round holds them.

    What waited for another is known where that was measured and brings nothing. An
    opportunity that cannot be run is none.
    """
    return tuple(
        swap.name
        for swap in swaps
        if not _rounds(measured, swap.name)
        and not (_rounds(measured, swap.after) and not may_help(measured, swap.after))
        and not (swap.kind == "opportunity" and _fails(swap, measured))
    )


def _fails(swap: Swap, measured: Measurement) -> bool:
    """Whether it was tried and did not come through, or what it waited for."""
    tried = [*measured.of(swap.name), *measured.of(swap.after)]
    return any(t.outcome not in ("completed", "stopped") for t in tried)


def _known(measured: Measurement, name: str) -> bool:
    """Whether a round holds it, or it has been tried often enough without one."""
    # A trial that was too short for a rate, or whose counterpart was, says nothing.
    return bool(_rounds(measured, name)) or len(measured.of(name)) >= _TRIED


def _fitting(measured: Measurement, budget: float) -> int:
    """How many swaps a round may hold that is to end within the budget, at least 1."""
    last = max((trial.round for trial in measured.trials), default=0)
    trials = [trial for trial in measured.trials if trial.round == last]
    took = _spent_s(trials) - min((trial.started_s for trial in trials), default=0.0)
    if took <= 0:
        return sys.maxsize
    left = budget - _spent_s(measured.trials)
    return max(1, int(left / (took / len(trials))) - _ALWAYS)


def _spent_s(trials: Iterable[Trial]) -> float:
    """Seconds from the start until the last of these had ended."""
    return max((trial.started_s + trial.wall_s for trial in trials), default=0.0)


def _ratio(measured: Measurement, name: str) -> float:
    compared = measured.compare(name, AS_GIVEN)
    return compared.ratio if compared else 1.0


def _cannot_run(measured: Measurement) -> bool:
    """Whether the training as given has been tried, and never came through."""
    tried = [*measured.of(AS_GIVEN), *measured.of(TWIN)]
    failed = [t for t in tried if t.outcome not in ("completed", "stopped")]
    return bool(failed) and not any(t.outcome == "completed" for t in tried)


def _rounds(measured: Measurement, name: str) -> int:
    compared = measured.compare(name, AS_GIVEN)
    return compared.rounds if compared else 0


def _clear(measured: Measurement, name: str) -> bool:
    compared = measured.compare(name, AS_GIVEN)
    if compared is None:
        return False
    return compared.rounds >= _ENOUGH_ROUNDS and compared.half_width < _NARROW
