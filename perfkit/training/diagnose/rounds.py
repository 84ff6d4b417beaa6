"""Which changes are measured next, from what has been measured by then.

In the process that looks, groups come first: without input, without whoever watches.
A change that depends on a group is tried once that has brought something; what an
account by line points to comes first. In fresh processes what was found is confirmed,
and what needs a training made anew is tried. Near the end the best are measured
together.
"""

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from perfkit.engine import plan as engine_plan
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.engine.trial import Trial, Yielded
from perfkit.findings.diagnosis import MUCH, TOGETHER
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts

_Work = Callable[[], Iterator[Yielded]]
# A turn in the process that looks lasts so long at least.
_TURN_S = 0.8
# Its first step, a new iterator and the ends of epochs come on top of it.
_AROUND = 1.6
# Turns that tell which group holds a training up, and which change of it does.
_TURNS = 48
# Variants of a round in fresh processes: as given, and the two best.
_CONFIRMED = 3
# Between the turns and the rounds, and after these, pass about so many seconds.
_HANDOVER_S = 2.0
# What a trial takes besides its first step until it is steady.
WARM_UP_S = 1.0
# Rounds that a loop of the user's own needs, all of them in fresh processes.
_LOOP_ROUNDS = 5
# Confirming may take this share of what is left after the first look; where a setting
# was seen that only a fresh process can leave off, all that one round needs.
_MOST_OF_IT = 0.4
_SHORTEST_S, LONGEST_S = 90.0, 600.0
# What is open then may take so many times as long as was planned.
_LONGER = 3.0


def turn_s(step_s: float) -> float:
    """Seconds of a turn in the process that looks, from when it is ready."""
    return engine_plan.turn_s(step_s, _TURN_S)


def last_turn_s(facts: Facts) -> float:
    """Seconds by which the last turn in the process that looks may overrun."""
    return _AROUND * turn_s(facts.step_s)


def trial_s(facts: Facts) -> float:
    """Seconds of a trial in a fresh process."""
    return facts.ready_s + WARM_UP_S + engine_plan.chosen_s(facts.step_s)


def round_s(facts: Facts) -> float:
    """Seconds of a round in fresh processes."""
    return _CONFIRMED * trial_s(facts)


def planned(
    facts: Facts, spent_s: float, budget: float | None
) -> tuple[float, float, float]:
    """Plan what is left of a budget once the first look has spent so much of it.

    A budget that is None is what the training needs, at most ten minutes.

    Returns:
        The seconds of all of it; of turns in one process, the rest being for rounds in
        fresh ones; and of all of it where that leaves open what helps.
    """
    turns_s, fresh_s = _TURNS * _AROUND * turn_s(facts.step_s), round_s(facts)
    longest = budget
    if budget is None:
        needed = spent_s + turns_s + 2 * fresh_s
        budget = min(LONGEST_S, max(_SHORTEST_S, needed))
        longest = min(LONGEST_S, _LONGER * budget)
    rest_s = max(0.0, budget - spent_s)
    reserve_s = min(2 * fresh_s, _MOST_OF_IT * rest_s)
    if reserve_s < fresh_s:
        # Half a round claims nothing that the turns do not show.
        pair_s = 2 * trial_s(facts) + last_turn_s(facts) + _HANDOVER_S
        reserve_s = pair_s if facts.settings and pair_s <= rest_s else 0.0
    return budget, rest_s - reserve_s, longest or budget


def without_turns_s(facts: Facts) -> float:
    """Seconds that a training needs in which nothing takes turns: a loop of its own."""
    needed = facts.ready_s + _LOOP_ROUNDS * round_s(facts)
    return min(LONGEST_S, max(_SHORTEST_S, needed))


AS_GIVEN = "as given"
# The least gain that is worth claiming.
CLAIMED = 1.05
# A single round may be wrong by this much; what is worse brings nothing. What waited
# for another change to help gets a second chance more easily.
_HOPELESS, _LIKELY = 0.97, 0.85
# Of the budget, after which what was found is measured together.
_TOGETHER_AFTER = 0.55
# Making the trials of a round ready may take this share of the budget.
_SET_UP_SHARE = 0.3
# The training as given and its control are in every round.
_ALWAYS = 2
_NARROW = 0.03
_ENOUGH_ROUNDS = 3
# So often is tried what ends without a rate.
_TRIED = 2
_FEWEST_ROUNDS = 2
# In one process: turns of a change, how many of them side by side, and from which
# half-width on more of them tell nothing that matters.
_FEWEST_TURNS, _MOST_TURNS, _AT_A_TIME, _CLEAR = 2, 12, 4, 0.1
# After so many turns it waits for what is no mistake, and has not been tried.
_SOME_TURNS = 4
# One turn of a group that shows so much says that its changes are worth a try.
_PLAINLY = 1.5
# A gain that is worth a reason, and the share of another gain that one explains where
# that changes what is learnt.
PLAIN, SHARES = 1.15, 0.2


def _no_work() -> Iterator[Yielded]:
    """Stand for what runs elsewhere."""
    return iter(())


class Screening:
    """Chooses whose turn it is in one process, of all that can be changed there.

    Causes that an account suspects come first. It is hurried where a mistake waits for
    fresh processes.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        suspects: Collection[str] = (),
        *,
        hurried: bool = False,
    ) -> None:
        self._changes, self._suspects = changes, suspects
        self._max_turns = _SOME_TURNS if hurried else _MOST_TURNS
        self._turns: dict[str, int] = {}

    def __call__(
        self, measured: Measurement, failed: Collection[str] = ()
    ) -> list[str]:
        """Name what has the next turns; nothing where no turn would tell more."""
        places = {
            change.name: self._place(change, measured)
            for change in self._changes
            if change.name not in failed and self._needs_turn(change, measured)
        }
        # What was begun goes on beside what comes first; the rest waits its turn.
        first = min((p[0] for p in places.values() if p[0]), default=0)
        names = sorted(places, key=places.__getitem__)
        names = [n for n in names if places[n][0] <= first][:_AT_A_TIME]
        for name in names:
            self._turns[name] = self._turns.get(name, 0) + 1
        return names

    def _place(self, change: Change, measured: Measurement) -> tuple[int, bool, float]:
        turns, ratio = self._turns.get(change.name, 0), _ratio(measured, change.name)
        if turns >= _SOME_TURNS:
            place = 6
        elif turns:
            # What one turn shows plainly, or not at all, is known well enough to wait
            # for what is not known: with steps of a second few turns fit.
            plainly = change.ceiling and ratio > _PLAINLY
            again = turns < _FEWEST_TURNS and ratio > CLAIMED and not plainly
            place = 0 if again else 4
        elif change.masks or (change.ceiling and not change.leaves_out):
            place = 1
        elif change.kind == "opportunity" and not change.leaves_out:
            place = 5
        else:
            place = 2 if change.after else 3
        if change.after and not turns:
            # Of two groups that are open the larger one holds more.
            ratio = _ratio(measured, change.after)
        return place, change.cause not in self._suspects, -ratio

    def _needs_turn(self, change: Change, measured: Measurement) -> bool:
        turns = self._turns.get(change.name, 0)
        compared = _compare(measured, change.name)
        if not turns:
            return not change.after or is_open(measured, change.after)
        if compared is None:
            return turns < _FEWEST_TURNS
        if turns < _FEWEST_TURNS:
            return compared.high >= CLAIMED
        if turns >= self._max_turns or compared.high < CLAIMED:
            return False
        return compared.ratio > 1 and not (
            compared.low > CLAIMED and compared.half_width < _CLEAR
        )


def is_open(measured: Measurement, group: str) -> bool:
    """Whether leaving out a group has brought so much that its changes may help."""
    compared = _compare(measured, group)
    return compared is not None and compared.ratio > CLAIMED


def baseline(work: _Work = _no_work) -> Variant:
    """The training as given."""
    return Variant(AS_GIVEN, work, "The training as you gave it.")


def to_variant(change: Change, work: _Work = _no_work) -> Variant:
    """The training with one thing changed."""
    return Variant(
        change.name,
        work,
        change.changes,
        AS_GIVEN,
        own_pauses=change.own_pauses,
        other_pauses=change.ceiling,
    )


def to_variants(changes: Sequence[Change]) -> tuple[Variant, ...]:
    """The training as given and with each of these, as a process tells of them."""
    return (baseline(), *(to_variant(change) for change in changes))


class Rounds:
    """Chooses the variants of a round in fresh processes.

    Args:
        changes: All that apply.
        work: Makes the work of the training with some changes applied.
        budget: Seconds of the rounds.
        facts: Of the training: about when a trial is ready, and how long a step takes.
        screened: Whether the first round was one process in which what can be changed
            there took turns.
        usual_s: Seconds after which it ends unless it is still open what helps; None
            where the whole budget is to be spent.

    Attributes:
        together: What is applied together; empty until that is measured.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        work: Callable[[Sequence[Change]], _Work],
        budget: float,
        facts: Facts,
        *,
        screened: bool = False,
        usual_s: float | None = None,
    ) -> None:
        self._changes, self._work, self._budget = changes, work, budget
        self._screened, self._usual_s = screened, usual_s or budget
        until_s = facts.ready_s + WARM_UP_S
        self._each_s = trial_s(facts)
        # One round leaves much in doubt: no more are begun than two rounds can hold.
        twice = budget / _FEWEST_ROUNDS / self._each_s
        capacity = int(min(_SET_UP_SHARE * budget / until_s, twice))
        self._capacity = max(1, capacity - _ALWAYS)
        self.together: tuple[Change, ...] = ()

    def __call__(self, measured: Measurement) -> tuple[Variant, ...]:
        """Name the variants of the next round; none where nothing is left to learn."""
        trials = [*measured.trials_of(AS_GIVEN), *measured.trials_of(CONTROL)]
        ran = any(trial.outcome == "completed" for trial in trials)
        if not ran and _fails(measured, AS_GIVEN, CONTROL):
            return ()
        # Where nothing took turns there, fresh processes look for causes themselves.
        self._screened = self._screened and bool(measured.trials)
        if not self._changes and not measured.trials:
            return (baseline(self._work(())),)
        capacity = self._fitting(measured)
        queue = [c for c in self._changes if self._needs_round(c, measured)]
        if self._screened:
            # What may take long to compile must not take the time of what is wrong.
            queue = [c for c in queue if not _waits(c, queue, measured)]
        queue.sort(key=lambda change: self._place(change, measured))
        together = list(self._together(measured))
        apart = queue[: max(0 if self._screened else 1, capacity - len(together))]
        variants = [*self._with_each(apart), *together]
        if not variants and not self._screened:
            # One round leaves much in doubt, even that a change brings nothing.
            once = [s for s in self._changes if _rounds(measured, s.name) == 1]
            variants = [*self._with_each(once[:capacity])]
        return (baseline(self._work(())), *variants) if variants and capacity else ()

    def _place(self, change: Change, measured: Measurement) -> tuple[object, ...]:
        rounds, ratio = _rounds(measured, change.name), -_ratio(measured, change.name)
        if self._screened:
            # What was found is confirmed, the largest first; then comes what needs a
            # training made anew.
            return (change.ceiling, rounds == 0, ratio)
        # What was seen once may be claimed after one round more; then comes the new.
        # Of that, what waited for a change that did bring something is the likeliest,
        # and what shows first whether a whole group of changes is worth a try.
        plain = change.masks and not rounds
        group = not (change.ceiling or plain) or bool(rounds)
        order = (1, 0, 2)[min(rounds, 2)]
        return (order, not change.after, group, not plain, ratio)

    def _fitting(self, measured: Measurement) -> int:
        """How many changes the next round may hold, to end in time."""
        last = max((trial.round for trial in measured.trials), default=0)
        each_s = self._each_s
        if last > 1 or not self._screened:
            trials = [trial for trial in measured.trials if trial.round == last]
            begin_s = min((trial.started_s for trial in trials), default=0.0)
            took_s = _spent_s(trials) - begin_s
            if took_s <= 0:
                return sys.maxsize if self._screened else self._capacity
            each_s = took_s / len(trials)
        spent_s = _spent_s(measured.trials)
        remaining_s = self._usual_s - spent_s
        if self._screened:
            capacity = int(remaining_s / each_s) - 1
            if capacity < 1 and self._is_open(measured):
                # It is measured on, the likeliest alone.
                longest = int((self._budget - spent_s) / each_s) - 1
                capacity = min(_CONFIRMED, longest)
            return max(0, capacity)
        return min(self._capacity, max(1, int(remaining_s / each_s) - _ALWAYS))

    def _with_each(self, changes: Iterable[Change]) -> Iterator[Variant]:
        """The training with one thing changed, for each of these."""
        return (to_variant(change, self._work((change,))) for change in changes)

    def _needs_round(self, change: Change, measured: Measurement) -> bool:
        if self._screened:
            return self._left_open(change, measured)
        # Too much depends on the ceiling for one unlucky round to decide.
        if change.ceiling and _rounds(measured, change.name) < _FEWEST_ROUNDS:
            return True
        if not _is_settled(measured, change.name):
            return not change.after or may_help(measured, change.after)
        hopeless = _LIKELY if change.after else _HOPELESS
        helps = may_help(measured, change.name, hopeless)
        return helps and not _clear(measured, change.name)

    def _left_open(self, change: Change, measured: Measurement) -> bool:
        """Whether fresh processes tell more of it than the turns in one did."""
        compared = _compare(measured, change.name)
        if not _is_settled(measured, change.name):
            return not change.after or is_open(measured, change.after)
        if compared is None or compared.high < CLAIMED or compared.ratio < 1:
            return False
        if compared.rounds < _FEWEST_ROUNDS:
            # Of a group it is enough that one of its changes explains it.
            inside = [s.name for s in self._changes if s.after == change.name]
            best = max((_ratio(measured, name) for name in inside), default=1.0)
            return compared.ratio > CLAIMED and not (change.ceiling and best > CLAIMED)
        return not _clear(measured, change.name)

    def _is_open(self, measured: Measurement) -> bool:
        """Whether nothing is sure to help, and something may help much."""
        pairs = [
            (s, _compare(measured, s.name)) for s in self._changes if not s.leaves_out
        ]
        comparisons = [(s, compared) for s, compared in pairs if compared]
        is_sure = any(
            s.helps(c) and c.sure == "sure" and c.ratio >= CLAIMED and not s.ceiling
            for s, c in comparisons
        )
        # What is faster and does not stand out is not claimed, and so is open.
        vague = (c for s, c in comparisons if not s.helps(c))
        return not is_sure and any(c.high > MUCH and c.ratio > _HOPELESS for c in vague)

    def _together(self, measured: Measurement) -> Iterator[Variant]:
        if (
            not self.together
            and _spent_s(measured.trials) > _TOGETHER_AFTER * self._usual_s
        ):
            changes = combined(self._changes, measured)
            self.together = changes if len(changes) > 1 else ()
        if self.together and not _clear(measured, TOGETHER):
            names = ", ".join(f'"{change.name}"' for change in self.together)
            yield Variant(
                TOGETHER,
                self._work(self.together),
                f"All at once: {names}.",
                AS_GIVEN,
                own_pauses=any(change.own_pauses for change in self.together),
            )


def _waits(change: Change, candidates: Iterable[Change], measured: Measurement) -> bool:
    """Whether an opportunity waits for what is wrong, which it does not dwarf."""
    if change.kind != "opportunity":
        return False
    ratio = _ratio(measured, change.name)
    return any(
        not _rounds(measured, candidate.name)
        or explains(_ratio(measured, candidate.name), ratio, SHARES)
        for candidate in candidates
        if candidate.kind != "opportunity" and change.waits_for(candidate.cause)
    )


def explains(gain: float, other_gain: float, share: float) -> bool:
    """Whether a gain is plain, and so much of another."""
    return gain >= PLAIN and math.log(gain) >= share * math.log(other_gain)


def may_help(measured: Measurement, name: str, hopeless: float = _HOPELESS) -> bool:
    """Whether a change may yet turn out to bring something worth claiming.

    A single round settles it where its ratio is below ``hopeless``.
    """
    compared = _compare(measured, name)
    if compared is None or compared.is_judged:
        return compared is not None and compared.high > CLAIMED
    return compared.ratio > hopeless


def combined(changes: Sequence[Change], measured: Measurement) -> tuple[Change, ...]:
    """What is worth applying together: the best of each cause that helps."""
    best: dict[str, tuple[float, Change]] = {}
    for change in changes:
        compared = _compare(measured, change.name)
        is_apart = change.ceiling or change.needed or not change.combines
        if compared is None or is_apart:
            continue
        # Each callback is a thing of its own; of two ways to read one is taken.
        key = change.name if change.cause == "callback" else change.cause
        if change.helps(compared) and compared.ratio > best.get(key, (CLAIMED,))[0]:
            best[key] = compared.ratio, change
    return tuple(change for _, change in best.values())


def unmeasured(changes: Sequence[Change], measured: Measurement) -> tuple[str, ...]:
    """Name the changes that may help for all that is known: no round holds them.

    What waited for another is known where that was measured and brings little at most,
    and so is what waited for what waited. An opportunity that cannot be run is none.
    """
    waits = {change.name: change.after for change in changes}

    def is_bounded(group: str) -> bool:
        if not _rounds(measured, group):
            return bool(group) and is_bounded(waits.get(group, ""))
        compared = _compare(measured, group)
        little = compared is not None and compared.high <= MUCH
        return little or not may_help(measured, group)

    return tuple(
        c.name
        for c in changes
        if not c.leaves_out
        and not _rounds(measured, c.name)
        and not is_bounded(c.after)
        and not (c.kind == "opportunity" and _fails(measured, c.name, c.after))
    )


def _fails(measured: Measurement, *names: str) -> bool:
    """Whether one of these was tried and did not come through."""
    return any(trial.has_failed for name in names for trial in measured.trials_of(name))


def _is_settled(measured: Measurement, name: str) -> bool:
    """Whether a round holds it, or it has been tried often enough without one."""
    # A trial that was too short for a rate, or whose counterpart was, says nothing.
    return bool(_rounds(measured, name)) or len(measured.trials_of(name)) >= _TRIED


def _spent_s(trials: Iterable[Trial]) -> float:
    """Seconds from the start until the last of these had ended."""
    return max((trial.started_s + trial.wall_s for trial in trials), default=0.0)


def _compare(measured: Measurement, name: str) -> Comparison | None:
    return measured.compare(name, AS_GIVEN)


def _ratio(measured: Measurement, name: str) -> float:
    compared = _compare(measured, name)
    return compared.ratio if compared else 1.0


def _rounds(measured: Measurement, name: str) -> int:
    compared = _compare(measured, name)
    return compared.rounds if compared else 0


def _clear(measured: Measurement, name: str) -> bool:
    compared = _compare(measured, name)
    if compared is None:
        return False
    return compared.rounds >= _ENOUGH_ROUNDS and compared.half_width < _NARROW
