"""What is shown over all jobs: a word for it, and one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing import ratios
from perfkit.comparing.record import largest, size
from perfkit.comparing.words import (
    PARTS_SAID,
    all_named,
    as_long_or_fast,
    counted,
    interval,
    share,
)

if TYPE_CHECKING:
    from perfkit.comparing.differing import Differs, RungRatio
    from perfkit.comparing.record import Explained, Said

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
