"""Do two sides do the same job? Their model, their data, how they learn, at first.

What differs is said before any rate is compared. Losses waver from batch to batch, and
two versions may see theirs in another order, so losses differ only where they lie
further apart than that lets expect.
"""

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from perfkit import units
from perfkit.diagnosis.facts import Facts
from perfkit.findings.reading import losses
from perfkit.measure.measurement import Measurement
from perfkit.race.side import COMPILED

# So many of the first losses are held against each other, and lie apart where they
# differ by so many standard errors and by this share.
_FIRST, _ERRORS, _SHARE = 5, 4.0, 0.02
# Losses that differ by no more are the same but for rounding.
_ROUNDING = 1e-4
_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")


@dataclass(frozen=True)
class Difference:
    """Something that two sides do not do alike.

    Attributes:
        said: What, after "instead of" what: the end of a sentence.
        other_work: Whether an example of one is no example of the other.
    """

    said: str
    other_work: bool = False


def differences(
    one: Facts, other: Facts, *, retuned: bool = False
) -> tuple[Difference, ...]:
    """What ``one`` does otherwise than ``other``, by what they were seen to be.

    Args:
        one: The side in question.
        other: The baseline.
        retuned: Whether another batch is what was asked for, and so no difference.
    """
    return tuple(_differences(one, other, retuned=retuned))


def _differences(one: Facts, other: Facts, *, retuned: bool) -> Iterator[Difference]:
    if one.counts != other.counts:
        said = "one of them counts its steps, and what these hold is not known"
        yield Difference(said, other_work=True)
        return
    # A loop of one's own does not show its model.
    seen = not (one.loop or other.loop)
    if seen and one.parameters != other.parameters:
        now, before = map(_count, (one.parameters, other.parameters))
        said = f"its model has {now} parameters instead of {before}"
        yield Difference(said, other_work=True)
    elif seen and one.layers != other.layers:
        added = _beyond(one.layers, other.layers)
        left = _beyond(other.layers, one.layers)
        what = [f"has {added}"] * bool(added) + [f"lacks {left}"] * bool(left)
        said = " and ".join(what) or "has them in another order"
        said = f"of the layers of its model it {said}"
        yield Difference(said, other_work=True)
    fixed = not (_is_open(one) or _is_open(other))
    mine, theirs = (_inputs(facts, sizes=fixed) for facts in (one, other))
    if mine != theirs:
        said = f"an example is {_listed(mine)} instead of {_listed(theirs)}"
        yield Difference(said, other_work=True)
    if one.batch != other.batch and not retuned:
        yield Difference(f"a step holds {one.batch} examples instead of {other.batch}")
    # Examples of an epoch; 0 where nobody knows.
    mine_, theirs_ = ((each.steps or 0) * each.batch for each in (one, other))
    # The last batch of an epoch may be dropped or not.
    most = max(one.batch, other.batch)
    if mine_ and theirs_ and abs(mine_ - theirs_) > most:
        said = f"an epoch holds {_count(mine_)} examples instead of {_count(theirs_)}"
        yield Difference(said)


def in_learning(
    measured: Measurement, side: str, baseline: str
) -> Iterator[Difference]:
    """What it does otherwise by how it learns: as compiled, and its first losses."""
    mine, theirs = (_compiled(measured, each) for each in (side, baseline))
    for name in sorted(mine.keys() & theirs.keys()):
        if mine[name] != theirs[name]:
            now, before = (_set_to(each[name]) for each in (mine, theirs))
            yield Difference(f"its {name} is {now} instead of {before}")
    one, other = first_losses(measured, side, baseline)
    finite = [all(map(math.isfinite, losses)) for losses in (one, other)]
    enough = len(one) > 1 and len(other) > 1
    if enough and (_apart(one, other) if all(finite) else any(finite)):
        now, before = map(_mean, (one, other))
        yield Difference(f"its first losses are {now} instead of {before}")


def _mean(losses: list[float]) -> str:
    mean = statistics.fmean(losses)
    return units.significant(mean) if math.isfinite(mean) else "no numbers"


def first_losses(
    measured: Measurement, side: str, baseline: str
) -> tuple[list[float], list[float]]:
    """The first losses of all trials of both; none where its loop tells none.

    Where one tells them of several steps at a time, the other's are taken over as many.
    """
    told = losses_of(measured, side), losses_of(measured, baseline)
    ends = [[n for n, _ in next(iter(each.values()), ())[:_FIRST]] for each in told]
    coarse = max(filter(None, ends), key=itemgetter(0), default=[])
    one, other = (
        [loss for trial in each.values() for loss in _over(coarse, trial)]
        for each in told
    )
    return one, other


def _over(ends: list[float], told: list[tuple[float, float]]) -> list[float]:
    """The mean losses between these numbers of examples, as far as they were told."""
    first = told[:_FIRST]
    if not ends or first[0][0] >= ends[0]:
        return [loss for _, loss in first]
    counts, means = zip(*told, strict=True)
    sums = np.cumsum(np.diff(counts, prepend=0) * means)
    known = [0.0, *(end for end in ends if end <= counts[-1])]
    between = np.interp(known, (0, *counts), (0, *sums))
    found: list[float] = (np.diff(between) / np.diff(known)).tolist()
    return found


def losses_of(measured: Measurement, side: str) -> dict[int, list[tuple[float, float]]]:
    """Of a side in each round: after so many examples, the mean loss up to there."""
    told = {trial.round: losses(trial) for trial in measured.of(side)}
    return {number: one for number, one in told.items() if one}


def alike(measured: Measurement, side: str, baseline: str) -> bool:
    """Whether the first losses are the same but for rounding, in each round."""
    one, other = (losses_of(measured, each) for each in (side, baseline))
    common = one.keys() & other.keys()
    return bool(common) and all(
        abs(mine - theirs) <= _ROUNDING * max(abs(theirs), _ROUNDING)
        for number in common
        for (_, mine), (_, theirs) in zip(
            one[number][:_FIRST], other[number][:_FIRST], strict=False
        )
    )


def _apart(one: list[float], other: list[float]) -> bool:
    apart = abs(statistics.fmean(one) - statistics.fmean(other))
    # Each round may see the same batches: more of them are no more losses.
    count = min(len(one), len(other), _FIRST)
    error = math.hypot(*map(statistics.stdev, (one, other))) / math.sqrt(count)
    scale = abs(statistics.fmean(other))
    return apart > _ERRORS * error and apart > _SHARE * scale


def _compiled(measured: Measurement, side: str) -> dict[str, Any]:
    told = (trial.notes.get(COMPILED) for trial in measured.of(side))
    return next((one for one in told if isinstance(one, dict)), {})


def _set_to(value: Any) -> str:
    return units.significant(value) if isinstance(value, float) else str(value)


def _is_open(facts: Facts) -> bool:
    """Whether its batches may have other sizes each time."""
    return facts.open_shapes or facts.data not in ("tf.data", "arrays")


def _inputs(facts: Facts, *, sizes: bool) -> tuple[str, ...]:
    """The shapes of what goes into the model, without the length of a batch."""
    # Labels and weights come last; how they are written is no other example.
    parts = facts.element[:-1] if len(facts.element) > 1 else facts.element
    shapes = (_SHAPE.fullmatch(part) for part in parts)
    inside = [found[2].split(", ")[1:] for found in shapes if found]
    shown = (one if sizes else ["?"] * len(one) for one in inside)
    return tuple(", ".join(one) or "one number" for one in shown)


def _listed(shapes: tuple[str, ...]) -> str:
    return " and ".join(f"({one})" if "," in one else one for one in shapes) or "none"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number / 1e6:.3g} million"


def _beyond(some: tuple[str, ...], others: tuple[str, ...]) -> str:
    left = list(others)
    more = [one for one in some if one not in left or left.remove(one)]  # type: ignore[func-returns-value]
    return ", ".join(dict.fromkeys(more))
