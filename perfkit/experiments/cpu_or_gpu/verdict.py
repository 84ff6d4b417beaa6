"""What a run on two devices means, in one sentence.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.cpu_or_gpu import facts, numbers, where
from perfkit.experiments.shared.words import brief
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from perfkit.experiments.cpu_or_gpu.facts import Asked
    from perfkit.experiments.cpu_or_gpu.numbers import Curve, Point
    from perfkit.experiments.cpu_or_gpu.where import Crossing
    from perfkit.measure.measurement import Measurement

_PAYS = f"pays (at least {units.percent(where.PAYS - 1)} faster)"
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement, asked: Asked) -> Verdict:
    """Say from which size on the second device pays, why, and what to change.

    Args:
        measured: The run.
        asked: What was asked.
    """
    because = tuple(facts.because(measured, asked))
    drawn = numbers.curve(measured)
    if drawn is None:
        return Verdict(
            headline="Fewer than three widths were timed on both devices, so nothing "
            "is said about where the second one pays.",
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    found = where.crossing(drawn)
    who = _second(measured)
    return Verdict(
        headline=f"{who} {_said(found, drawn)}.",
        because=because,
        next=_next(found, drawn, measured),
    )


def _second(measured: Measurement) -> str:
    """The second device, as a sentence begins with it."""
    cores = measured.notes.get(facts.CORES)
    if numbers.devices(measured)[1] == "GPU":
        return "The GPU"
    return "A second core" if cores == 2 else f"Training on all {cores or 'the'} cores"


def _said(found: Crossing, drawn: Curve) -> str:
    batch = f"batch {drawn.batch:,}"
    narrowest, widest = drawn.points[0], drawn.points[-1]
    ends = f"{_gain(widest, ' the examples per second')}, {_gain(narrowest)}"
    if found.kind == "from":
        return f"{_PAYS} {_from(found, drawn)}; {ends}"
    if found.kind == "always":
        return (
            f"{_PAYS} at every width that was tried, from {narrowest.what} on "
            f"({batch}): {ends}"
        )
    if found.kind == "never":
        return (
            f"never {_PAYS} within what was tried, up to {widest.what} ({batch}): "
            f"{ends}"
        )
    return f"{_elsewhere(found, drawn)} ({batch}): {ends}"


def _from(found: Crossing, drawn: Curve) -> str:
    batch = f"batch {drawn.batch:,}"
    high = _width(found.high or 0.0)
    if found.width is None or not units.is_known(found.low or 0.0, found.high or 0.0):
        return f"from width {high} on at the latest, 95 % sure ({batch})"
    between = f"95 % interval {_width(found.low or 0.0)} to {high}"
    return f"from about width {_width(found.width)} on ({between}; {batch})"


def _elsewhere(found: Crossing, drawn: Curve) -> str:
    """Where it pays, where no single width parts what pays from what does not."""
    said = {p.what: where.says(p) for p in drawn.points}
    paying = [what for what, says in said.items() if says == "pays"]
    not_so = [what for what, says in said.items() if says == "does not"]
    pays = f"{_PAYS} at {', '.join(paying)}" if paying else ""
    if found.kind == "mixed":
        return f"{pays}, and not at {', '.join(not_so)}"
    lost = [what for what, says in said.items() if says == "open"]
    if pays:
        return f"{pays}, and noise hides whether it does at {', '.join(lost)}"
    them = "each of them" if len(lost) == len(said) else ", ".join(lost)
    return f"is not shown to pay at any width: noise hides it at {them}"


def _gain(point: Point, of: str = "") -> str:
    times, more = brief(point.gain).split(" ", 1)
    return f"{times}{of} at {point.what} {more}"


def _width(width: float) -> str:
    """Two digits say as much as is known of where lines cross."""
    return units.significant(width, 2)


def _next(found: Crossing, drawn: Curve, measured: Measurement) -> str:
    first, _ = numbers.devices(measured)
    keep = "the CPU" if first == "CPU" else "one core, and give the others other work"
    if found.kind == "open":
        return _QUIETER
    if found.kind == "always":
        return f"Train with it; ask again with a `narrowest` below {_narrowest(drawn)}."
    larger = _larger(measured, drawn)
    if found.kind == "never":
        return f"Keep such networks on {keep}{larger}."
    return f"Train on it what lies beyond; keep smaller steps on {keep}{larger}."


def _larger(measured: Measurement, drawn: Curve) -> str:
    """What makes a step larger, where the run has shown that it helps."""
    paying = [
        point
        for point in numbers.points(measured)
        if point.size and point.batch > drawn.batch and where.says(point) == "pays"
    ]
    if not paying:
        return ""
    batch = f"`batch_size={paying[-1].batch}`, with which {paying[-1].what} pays"
    return (
        f", or make a step larger: {batch}. `perfkit run execution-mode` measures what "
        "several steps in a call bring"
    )


def _narrowest(drawn: Curve) -> str:
    return drawn.points[0].what.removeprefix("width ")
