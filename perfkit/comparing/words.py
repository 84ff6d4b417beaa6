"""What an explanation says in words: A and B stand for the two machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing.record import LOAD, UNEXPLAINED, largest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.comparing.differing import Differs, MachineDiffers, Ratio
    from perfkit.comparing.record import (
        Advice,
        Change,
        Explained,
        Explanation,
        One,
    )

PARTS_SAID = {
    "input": "the input pipeline",
    "dispatch": "starting the steps (dispatch)",
    "transfer": "copying to the GPU (transfer)",
    "compute": "compute",
    "throttling": "slower clocks (throttling)",
    LOAD: "background load",
    UNEXPLAINED: "not explained",
}
_NEXT = {
    "input": "`perfkit run data-pipeline` says which way of feeding is fastest there.",
    "dispatch": "`perfkit run execution-mode` says what several steps per call bring.",
    "transfer": "`perfkit doctor` says whether the link to the GPU is held back.",
    "compute": "`perfkit doctor --probe` says how near to its limits each part comes.",
}
_LEAST_S = 1e-9
# A share whose interval spans a larger factor is not known, unless all of it is small.
_SMALL = 0.1


def because(works: tuple[Explained, ...], software: str) -> Iterator[str]:
    """The measured facts, a sentence each."""
    if software:
        yield software
    for work in works:
        if work.speed is not None:
            yield f"{_spelled(work)}."
        elif work.job:
            yield f"{work.name} is another job on B: {all_named(work.job)}."
        else:
            yield f"{work.name}: {work.missing}"
    most = largest(works)
    if most is not None:
        yield from _split(most)


def following(works: tuple[Explained, ...]) -> Iterator[str]:
    """Which measurement on the slower machine says more."""
    most = largest(works)
    if most is None:
        return
    if not most.changes:
        yield (
            "`perfkit passport` on both machines says which part of them stands behind "
            "it."
        )
    yield from (_NEXT[one.name] for one in most.causes[:1] if one.name in _NEXT)


def in_text(found: Explanation) -> str:
    """All of it for a terminal or a log."""
    lines = [found.headline, *legend(found)]
    lines += _listed("Because", found.because)
    lines += _listed("What differs in the machines", map(_differs, found.differences))
    lines += _listed("What to do", map(advised, found.advice))
    lines += _listed("Next", found.next)
    return "\n".join(lines)


def legend(found: Explanation) -> Iterator[str]:
    """Which machine is A and which is B."""
    yield f"A: {_machine(found.a)}"
    yield f"B: {_machine(found.b)}"


def advised(one: Advice) -> str:
    """A remedy with what it could bring, at most."""
    seconds = f"up to {units.seconds(one.seconds)} of a step of {one.of}"
    return f"{one.title} ({seconds}): {one.remedy}"


def interval(speed: Ratio) -> tuple[str, str]:
    """How many times as fast or slow, and the ends of that, as text."""
    turned = speed.ratio < 1
    middle, *ends = (
        1 / value if turned else value for value in (speed.ratio, speed.low, speed.high)
    )
    low, high = sorted(ends)
    if not units.is_known(low, high):
        return f"{units.UNKNOWN}×", "how much is not known yet"
    return units.ratio(middle), f"{units.ratio(low)[:-1]} to {units.ratio(high)[:-1]}"


def as_long_or_fast(speed: Ratio) -> str:
    """What B does so many times, see ``interval``."""
    return "as long" if speed.ratio < 1 else "as fast"


def seconds(value: float | None) -> str:
    """Seconds as text; less than a clock can tell is nothing."""
    if value is None:
        return "not measured"
    return units.seconds(value if abs(value) >= _LEAST_S else 0.0)


def percent(value: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, or ``units.UNKNOWN``; "" where there is none."""
    if value is None or low is None or high is None:
        return ""
    small = max(abs(low), abs(high)) <= _SMALL
    if not small and not units.is_known(low, high):
        return units.UNKNOWN
    return f"{value:z.0%} ({low:z.0%} to {high:z.0%})".replace("%", " %")


def counted(number: int, of: Explained) -> str:
    """So many trainings, or variants."""
    noun = "training" if of.unit == "step" else "variant"
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _spelled(work: Explained) -> str:
    speed = work.speed
    if speed is None:
        return ""
    times, ends = interval(speed)
    word = as_long_or_fast(speed)
    both = f"{seconds(work.a)} a {work.unit} on A, {seconds(work.b)} on B"
    return f"{work.name}: {both}, {times} {word} ({ends}): {speed.verdict}"


def _split(work: Explained) -> Iterator[str]:
    for change in work.causes[1:]:
        why = f": {change.why}" if change.why else ""
        yield f"{_much(change)} is {PARTS_SAID[change.name]}{why}."
    left = work.change(UNEXPLAINED)
    if left is not None and left.low is not None and left.high is not None:
        ends = f"{seconds(left.low)} to {seconds(left.high)}"
        told = f"{seconds(left.change)} ({ends}) of {work.name} open"
        if left.low <= 0 <= left.high:
            told = f"nothing of {work.name} open that it could show ({ends})"
        yield f"The split leaves {told}."
    if work.predicted is not None and work.b is not None:
        yield _expected(work)
    elif work.changes:
        yield "Rungs are missing, so that no step of B could be predicted from A's."


def _expected(work: Explained) -> str:
    told, seen = work.predicted, work.b or 0.0
    if told is None:
        return ""
    if not units.is_known(told.low, told.high):
        return "What B's step should take by A's and the rungs is not known yet."
    if told.low <= seen <= told.high:
        left = "which lies within that"
    else:
        left = f"and the rungs do not explain the {_apart(told.seconds, seen)} between"
    return (
        "From A's step and the rungs, B's would take "
        f"{units.between(told.seconds, told.low, told.high, seconds)}; seen were "
        f"{seconds(seen)}, {left}."
    )


def _apart(one: float, other: float) -> str:
    return seconds(abs(other - one))


def _much(change: Change) -> str:
    told = share(change)
    return "Part of it, how much is not known yet," if told == units.UNKNOWN else told


def _machine(one: One) -> str:
    label = f"{one.label}, " if one.label else ""
    return f"{label}{one.summary}, recorded {one.recorded}"


def all_named(found: Iterable[Differs]) -> str:
    """Differences with both their values, in one clause."""
    return "; ".join(dict.fromkeys(map(_differs, found)))


def _differs(one: Differs | MachineDiffers) -> str:
    return f"{one.what}: {one.a} on A, {one.b} on B"


def _listed(title: str, sentences: Iterable[str]) -> list[str]:
    lines = [f"  {sentence}" for sentence in sentences]
    return [title, *lines] if lines else []


def share(change: Change) -> str:
    """A part's share of the difference, as text."""
    return percent(change.share, change.share_low, change.share_high)
