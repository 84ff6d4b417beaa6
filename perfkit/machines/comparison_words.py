"""A comparison of two machines in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machines import ratios
from perfkit.machines.comparison import LOAD, UNEXPLAINED, largest, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.machines.comparison import (
        Advice,
        Change,
        Explained,
        Explanation,
        One,
        Said,
    )
    from perfkit.machines.ratios import Differs, MachineDiffers, Ratio, RungRatio


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


def share(change: Change) -> str:
    """A part's share of the difference, as text."""
    return percent(change.share, change.share_low, change.share_high)


# A share beyond which there is no rest to speak of.
_ALL = 0.985


def verdict(works: tuple[Explained, ...], *, same: bool) -> Said:
    """What is shown over all jobs, as a word."""
    compared = [work for work in works if work.speed is not None]
    said = [work.speed.verdict for work in compared if work.speed]
    claimed = {word for word in said if word in ("faster", "slower")}
    both = [work for work in works if work.a is not None and work.b is not None]
    if not same or (both and all(work.job for work in both)):
        return "not the same job"
    if not said:
        return "not measured"
    if len(claimed) > 1:
        return "depends on the training"
    if claimed:
        return claimed.pop()
    whole = ratios.on_the_whole(w.speed for w in compared if w.speed)
    alike = whole is not None and whole.verdict == "no difference shown"
    if said and set(said) == {"no difference shown"}:
        return "no difference shown"
    return "no difference shown" if alike else "too noisy to say"


def headline(
    found: Said,
    works: tuple[Explained, ...] = (),
    job: tuple[Differs, ...] = (),
    rungs: tuple[RungRatio, ...] = (),
) -> str:
    """It all in a sentence."""
    if found == "not the same job":
        named = job or tuple(one for work in works for one in work.job)
        return f"Not the same job, so no word on speed: {all_named(named)}."
    compared = [work for work in works if work.speed is not None]
    most = largest(works)
    if most is not None:
        other = largest(w for w in works if w.slower != most.slower)
        against = f". {_claim(other)}" if other else ""
        return f"{_claim(most)}{_cause(most)}{against}."
    if not compared:
        return f"No training was measured on both machines{_of_rungs(rungs)}."
    return _without_claim(found, compared)


def _claim(work: Explained) -> str:
    if work.speed is None:
        return ""
    times, ends = interval(work.speed)
    takes = "takes" if work.speed.ratio < 1 else "runs"
    long = as_long_or_fast(work.speed)
    return f"On B {work.name} {takes} {times[:-1]} times {long} as on A ({ends})"


def _cause(work: Explained) -> str:
    """What most of the difference is, and what stands behind that."""
    if not work.changes:
        return "; its time was not taken apart on both"
    if not work.causes:
        return "; no single part of the step is shown to explain it"
    first = work.causes[0]
    part = min(first.share or 0.0, 1.0)
    much = "all" if part > _ALL else f"{part:.0%}".replace("%", " %")
    if share(first) == units.UNKNOWN:
        much = "part"
    why = f": {first.why}" if first.why else ""
    return f"; {much} of that is {PARTS_SAID[first.name]}{why}"


def _of_rungs(rungs: tuple[RungRatio, ...]) -> str:
    """How many parts of B are slower or faster, and which most."""
    known = [rung for rung in rungs if rung.speed is not None]
    if not known:
        return ", and no part of them"
    told = []
    for word in ("slower", "faster"):
        found = [r for r in known if r.speed and r.speed.verdict == word]
        if found:
            most = max(found, key=lambda rung: size(rung.speed))
            ratio = units.ratio(most.speed.ratio) if most.speed else ""
            told.append(f"{word} in {len(found)} (most in {most.name}, {ratio})")
    said = " and ".join(told) or "shown to differ in none"
    return f"; of {len(known)} parts B is {said}"


def _without_claim(found: Said, works: list[Explained]) -> str:
    """That no difference shows, or that too much is left open, and where."""
    noisy = [w for w in works if w.speed and w.speed.verdict == "too noisy to say"]
    left = f"{len(noisy)} of {counted(len(works), works[0])}"
    if found != "no difference shown":
        return f"Too noisy to say: {left} may differ by more than 10 %."
    whole = ratios.on_the_whole(w.speed for w in works if w.speed)
    times, ends = interval(whole) if whole else ("", "")
    word = "as long as A" if whole and whole.ratio < 1 else "the speed of A"
    verb = "takes" if whole and whole.ratio < 1 else "has"
    more = f"; alone, {left} may differ by more than 10 %" if noisy else ""
    return f"No difference shown: on the whole B {verb} {times} {word} ({ends}){more}."
