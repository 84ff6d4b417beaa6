"""What explains the time: each part of a job on both machines, and what is expected."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perfkit.comparing import causes, ratios
from perfkit.comparing.drawing import drawn, ends, without_losses
from perfkit.comparing.jobs import same_work
from perfkit.comparing.load import losses
from perfkit.comparing.predicting import expected
from perfkit.comparing.record import ALL_PARTS_AND_REST, Change, Explained, Predicted
from perfkit.passports.record import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perfkit.comparing.differing import MachineDiffers, Ratio, RungRatio
    from perfkit.comparing.drawing import Drawn, Draws
    from perfkit.comparing.load import Lost
    from perfkit.comparing.predicting import Expected
    from perfkit.comparing.works import Held, Work


# Noise may let a part seem longer than its step, and no more than so many times.
_MOST_OF_STEP = 100.0


def explained(
    a: Held,
    b: Held,
    differences: Iterable[MachineDiffers],
    rungs: tuple[RungRatio, ...],
) -> tuple[Explained, ...]:
    """Each job that one of the two has, in A's order."""
    names = list(dict.fromkeys((*a.works, *b.works)))
    opened = {name: _opened(a, b, name) for name in names}
    comparable = [name for name, work in opened.items() if not work.missing]
    known, lost = ratios.by_name(rungs), losses(a, b)
    found = list[Explained]()
    for name, work in opened.items():
        if name in comparable:
            work = replace(work, speed=_speed(a, b, name, len(comparable)))
            work = _taken_apart(work, a, b, lost)
            work = _with_causes(work, differences, known, lost, (a, b))
        found.append(work)
    return tuple(found)


def _opened(a: Held, b: Held, name: str) -> Explained:
    """A job before it is compared; ``missing`` says why it is not."""
    for side, held in (("A", a), ("B", b)):
        work = held.works.get(name)
        if work is None or work.seconds is None:
            why = f": {work.missing}" if work and work.missing else "."
            return Explained(name=name, missing=f"Not measured on {side}{why}")
    one, other = a.works[name], b.works[name]
    job = same_work(a, b, name)
    made = Explained(name=name, unit=one.unit, a=one.seconds, b=other.seconds, job=job)
    if job:
        return replace(made, missing="The two are not the same job.")
    return replace(made, missing=_without_interval(one, other))


def _without_interval(one: Work, other: Work) -> str:
    if all(ratios.logarithm(_rate(work)) for work in (one, other)):
        return ""
    return "A step has no interval, or one that no machine can have."


def _speed(a: Held, b: Held, name: str, looks: int) -> Ratio | None:
    one, other = a.works[name], b.works[name]
    floors, shared = (a.floor, b.floor), math.hypot(a.drift, b.drift)
    found = ratios.between(_rate(one), _rate(other), floors, looks, shared)
    if found and min(one.trials, other.trials) < 2:
        # One trial shows nothing of how trials differ: nothing is claimed.
        return replace(found, verdict="too noisy to say")
    return found


def _rate(work: Work) -> ratios.Interval:
    low, middle, high = (
        1 / seconds if seconds else None
        for seconds in (work.high, work.seconds, work.low)
    )
    return low, middle, high


def _taken_apart(
    work: Explained, a: Held, b: Held, lost: tuple[Lost, Lost]
) -> Explained:
    """The parts of both, their changes and shares, and B's as expected."""
    one, other = a.works[work.name], b.works[work.name]
    names = tuple(
        name for name in PARTS if _is_known(one, name) and _is_known(other, name)
    )
    if not names:
        return work
    draw = np.random.default_rng(0)
    raw = drawn(one, names, draw), drawn(other, names, draw)
    clean = tuple(
        without_losses(of, loss, what, draw)
        for of, loss, what in zip(raw, lost, (one, other), strict=True)
    )
    told = expected(a, b, work.name, raw[0], draw)
    changes = tuple(_changes(clean[0], clean[1], told, claimed=work.claimed))
    return replace(work, changes=changes, predicted=_predicted(told.step))


def _is_known(work: Work, name: str) -> bool:
    part = work.parts.get(name)
    if part is None or part.seconds is None:
        return False
    numbers = (part.seconds, part.low or 0.0, part.high or 0.0)
    return max(map(abs, numbers)) <= _MOST_OF_STEP * (work.seconds or 0.0)


def _changes(a: Drawn, b: Drawn, told: Expected, *, claimed: bool) -> Iterable[Change]:
    whole = b.step - a.step
    for name in ALL_PARTS_AND_REST:
        if name not in a.parts and name not in b.parts:
            continue
        # The clocks of a GPU are told only where they fell.
        one, other = (side.parts.get(name, np.zeros(1)) for side in (a, b))
        change = other - one
        low, high = ends(change)
        scaled = told.parts.get(name)
        made = Change(
            name=name,
            a=_middle(one),
            b=_middle(other),
            change=_middle(change),
            low=low,
            high=high,
            predicted=None if scaled is None else _middle(scaled),
            rungs=told.rungs.get(name, ()),
        )
        yield _shared(made, change, whole) if claimed else made


def _shared(change: Change, of: Draws, whole: Draws) -> Change:
    """With its share of the difference between the steps."""
    shares = of / np.where(whole == 0, np.nan, whole)
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return change
    low, high = ends(shares)
    return replace(change, share=_middle(shares), share_low=low, share_high=high)


def _predicted(step: Draws | None) -> Predicted | None:
    if step is None:
        return None
    low, high = ends(step)
    return Predicted(seconds=_middle(step), low=low, high=high)


def _with_causes(
    work: Explained,
    differences: Iterable[MachineDiffers],
    rungs: Mapping[str, RungRatio],
    lost: tuple[Lost, Lost],
    machines: tuple[Held, Held],
) -> Explained:
    changes = tuple(
        replace(
            one,
            why=causes.behind(one, work.slower, differences, rungs, lost, machines),
        )
        if one.claimed
        else one
        for one in work.changes
    )
    return replace(work, changes=changes)


def _middle(draws: Draws) -> float:
    return float(np.median(draws))
