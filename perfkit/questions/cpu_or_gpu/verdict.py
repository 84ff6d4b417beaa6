"""What a run over sizes on two devices means."""

import functools
from collections.abc import Iterator

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Estimate
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.cpu_or_gpu.numbers import PAYS, Point, Result
from perfkit.questions.shared.words import (
    fact,
    failures,
    quoted,
    rates_behind,
    ratio_fact,
)

# The ways to bring a batch to the GPU, as variants have them.
FLOATS, BYTES, AHEAD = "GPU fed floats", "GPU fed bytes", "GPU fed ahead"
# What preparing told.
CORES = "cores"
# A fit that misses a step by more does not say where the time of a step goes.
_TRUSTED = 0.25
_IMPORT = "import tensorflow as tf"
_HIDE = 'tf.config.set_visible_devices([], "GPU")'
_ONE_CORE = "`taskset -c 0 python train.py` trains on one core and frees the others."
_BEFORE_WORK = (
    "More arithmetic units do not shorten the part before any work; a faster core, XLA "
    "and several steps per call can."
)


def judge(measured: Measurement, result: Result) -> Verdict:
    """Say from which size on the second device pays, by how much, and what to do."""
    facts, because = tuple(_facts(measured, result)), failures(measured)
    cores = measured.notes.get(CORES)
    first, second = "one core", f"all {cores or 'the'} cores"
    if result.devices[1] == "GPU":
        first, second = "the CPU", "the GPU"
    elif cores == 2:
        second = "both cores"
    if result.curve is None:
        return Verdict(
            headline=f"This run does not show from which width {second} pays.",
            much="Fewer than three widths were timed on both devices.",
            sure="not known yet",
            facts=facts,
            because=because,
            next="Check how the trials ended, or give the run more seconds.",
        )
    paying = [point for point in result.curve.points if point.says == "pays"]
    largest = (paying or result.curve.points)[-1]
    sure = largest.gain.sure if paying else "not known yet"
    if result.crossing.kind == "never":
        # Each interval ends below what pays, whether or not it leaves out 1.
        sure = "sure" if largest.gain.rounds > 1 else "likely"
    hides = result.crossing.kind == "never" and second == "the GPU"
    return Verdict(
        headline=_headline(result, first, second),
        much=_describe_gain(measured, largest, second),
        sure=sure,
        interval=largest.gain.ends,
        edits=(Edit(old=_IMPORT, new=f"{_IMPORT}\n{_HIDE}"),) if hides else (),
        facts=facts,
        because=(_BEFORE_WORK, *because),
        next=_next(result),
    )


def _headline(result: Result, first: str, second: str) -> str:
    crossing, points = result.crossing, result.curve.points if result.curve else ()
    if crossing.kind == "always":
        return f"Train on {second} at every width tried."
    if crossing.kind == "never":
        return f"Stay on {first}: {second} would bring too little."
    if crossing.kind == "from":
        below = "; below that is not known yet"
        if crossing.is_known:
            below = f", on {first} below"
        return f"Train on {second} {crossing.place}{below}."
    paying = ", ".join(point.size.name for point in points if point.says == "pays")
    if not paying:
        return f"This run does not show whether to train on {second}."
    tail = "not elsewhere" if crossing.kind == "mixed" else "elsewhere is not known yet"
    return f"Train on {second} at {paying}; {tail}."


def _describe_gain(measured: Measurement, point: Point, second: str) -> str:
    gain = point.gain
    fast = f"runs {units.times(gain.ratio)} times as fast"
    if not units.is_known(gain.low, gain.high):
        fast = "may or may not run faster"
    elif gain.verdict == "no difference shown":
        fast = "runs as fast"
    elif gain.ratio < 1:
        fast = f"takes {units.times(1 / gain.ratio)} times as long"
    rates = rates_behind(measured, gain)
    return f"At {point.size.name} training {fast} on {second}{rates}."


def _next(result: Result) -> str:
    if result.crossing.kind == "open" or not result.curve:
        return ""
    if result.crossing.kind == "always":
        narrowest = result.curve.points[0].size.width
        return f"Run it again with a `narrowest` below {narrowest}."
    # What makes a step larger, where the run has shown that it helps.
    paying = [point.size for point in result.off_curve if point.says == "pays"]
    if paying:
        return (
            f"Or make a step larger: with `batch_size={paying[-1].batch}` "
            f"{paying[-1].name} pays. `perfkit run execution-mode` measures several "
            "steps per call."
        )
    return _ONE_CORE if result.devices[0] == "one core" else ""


def _facts(measured: Measurement, result: Result) -> Iterator[Fact]:
    yield from _on_curve(result)
    for device, fit in result.fits.items():
        launch, per_byte, per_flop = fit.each
        facts = [fact(f"A step before any work, {device}", launch, units.seconds)]
        for part, label, unit in (
            (per_flop, "Arithmetic", "FLOP"),
            (per_byte, "Memory", "B"),
        ):
            if part.low > 0:
                ends = {"low": 1 / part.high, "high": 1 / part.low}
                speed = Estimate(value=1 / part.value, **ends)
                write = functools.partial(units.rate, unit=unit)
                facts.append(fact(f"{label}, {device}", speed, write))
        yield from (row for row in facts if row.interval)
        misses = units.percent(fit.worst)
        yield Fact(f"Largest error of these costs in a step, {device}", misses)
    device, curve = result.devices[1], result.curve
    second = result.fits.get(device)
    if curve and second and second.each[0].low > 0 and second.worst <= _TRUSTED:
        for point in (curve.points[0], curve.points[-1]):
            share = units.percent(second.each[0].value / second.at(point.size.cost))
            label = f"Share before any work at {point.size.name}, {device}"
            yield Fact(label, share)
    for compared in measured.comparisons:
        if compared.variant in (FLOATS, BYTES, AHEAD) and compared.ends:
            label = f"{quoted(compared.variant)} against {quoted(compared.baseline)}"
            yield ratio_fact(label, compared)


def _on_curve(result: Result) -> Iterator[Fact]:
    """Where the second device pays, what a larger batch gains, and the reader's own."""
    crossing, curve = result.crossing, result.curve
    if curve is None:
        return
    if crossing.kind == "from":
        faster = units.percent(PAYS - 1)
        label = f"Width from which it is {faster} faster, batch {curve.batch:,}"
        ends = (crossing.width, crossing.low, crossing.high)
        width, low, high = (units.significant(end, 2) for end in ends)
        is_within = crossing.low > 0
        interval = f"{low} to {high}" if is_within else ""
        yield Fact(label, width if is_within else f"{high} or below", interval)
    for point in result.off_curve:
        if point.gain.ends:
            label = f"Gain at {point.size.name}, batch {point.size.batch:,}"
            yield ratio_fact(label, point.gain)
    for dot in result.dots:
        how = "measured" if dot.measured else "read off the curve, not measured"
        label = f"Gain of {quoted(dot.name)}, like width {units.significant(dot.width)}"
        yield fact(f"{label}, {how}", dot.gain, units.ratio)
