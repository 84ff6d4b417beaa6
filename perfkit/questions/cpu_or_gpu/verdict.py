"""What a run over sizes on two devices means."""

import functools
from collections.abc import Iterator

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.findings.record import Edit, Verdict
from perfkit.questions.cpu_or_gpu import numbers
from perfkit.questions.cpu_or_gpu.numbers import Crossing, Curve, Point, Result
from perfkit.questions.shared.words import between, brief, failures, instead, quoted

# The ways to bring a batch to the GPU, as variants have them.
FLOATS, BYTES, AHEAD = "GPU fed floats", "GPU fed bytes", "GPU fed ahead"
# What preparing told.
CORES = "cores"
# A fit that misses a step by more does not say where the time of a step goes.
_TRUSTED = 0.25
_WORTH = units.percent(numbers.PAYS - 1)
# Two digits say as much as is known of where lines cross.
_width = functools.partial(units.significant, digits=2)
_IMPORT = "import tensorflow as tf"
_HIDE = 'tf.config.set_visible_devices([], "GPU")'
_ONE_CORE = "`taskset -c 0 python train.py` trains on one core and leaves the others."


def judge(measured: Measurement, result: Result) -> Verdict:
    """Say from which size on the second device pays, by how much, and what to do."""
    because = (*_costs(result), *_wire(measured), *failures(measured))
    cores = measured.notes.get(CORES)
    first, second = "one core", f"all {cores or 'the'} cores"
    if result.devices[1] == "GPU":
        first, second = "the CPU", "the GPU"
    elif cores == 2:
        second = "both cores"
    if result.curve is None:
        return Verdict(
            headline=f"From which width on to train on {second} is not known yet.",
            much="Fewer than three widths were timed on both devices.",
            sure="not known yet",
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    crossing, points = numbers.crossing(result.curve), result.curve.points
    paying = [point for point in points if point.says == "pays"]
    largest = (paying or points)[-1]
    sure = largest.gain.sure if paying else "not known yet"
    if crossing.kind == "never":
        # Each interval ends below what pays, whether or not it leaves out 1.
        sure = "sure" if largest.gain.rounds > 1 else "likely"
    hides = crossing.kind == "never" and second == "the GPU"
    return Verdict(
        headline=_headline(paying, crossing, first, second),
        much=_describe_gain(measured, largest, second),
        sure=sure,
        interval=largest.gain.ends,
        edits=(Edit(old=_IMPORT, new=f"{_IMPORT}\n{_HIDE}"),) if hides else (),
        because=(
            _where(result.curve, crossing),
            *_placed(result, result.curve),
            *because,
        ),
        next="" if crossing.kind == "open" else _next(result, crossing),
    )


def _headline(paying: list[Point], crossing: Crossing, first: str, second: str) -> str:
    if crossing.kind == "always":
        return f"Train on {second}, at every width that was tried."
    if crossing.kind == "never":
        return f"Stay on {first}: too little is gained with {second}."
    if crossing.kind == "from":
        if units.is_known(crossing.low, crossing.high):
            width = f"about width {_width(crossing.width)} on"
            return f"Train on {second} from {width}, on {first} below."
        width = f"width {_width(crossing.high)} on at the latest"
        return f"Train on {second} from {width}; below that is not known yet."
    if not paying:
        return f"Whether to train on {second} is not known yet."
    tail = "not elsewhere" if crossing.kind == "mixed" else "elsewhere is not known yet"
    return f"Train on {second} at {', '.join(p.size.name for p in paying)}; {tail}."


def _describe_gain(measured: Measurement, point: Point, second: str) -> str:
    gain = point.gain
    fast = f"runs {units.times(gain.ratio)} times as fast"
    if not units.is_known(gain.low, gain.high):
        fast = "may run faster or not"
    elif gain.verdict == "no difference shown":
        fast = "runs as fast"
    elif gain.ratio < 1:
        fast = f"takes {units.times(1 / gain.ratio)} times as long"
    rates = instead(*map(measured.timing, (gain.variant, gain.baseline)))
    return f"At {point.size.name} training {fast} on {second}{rates}."


def _where(curve: Curve, crossing: Crossing) -> str:
    """Where it begins to pay, with its interval."""
    ends = ""
    if crossing.kind == "from":
        low, high = _width(crossing.low), _width(crossing.high)
        ends = f": from width {low} to {high} on (95 % interval)"
        if not crossing.low:
            ends = f": from width {high} on or below"
    return (
        f"It pays where it is at least {_WORTH} faster, here with batches of "
        f"{curve.batch:,}{ends}."
    )


def _costs(result: Result) -> Iterator[str]:
    """What a step costs on each device, where the fit says it."""
    for device, fit in result.fits.items():
        speeds = [
            units.rate_between(1 / part.value, 1 / part.high, 1 / part.low, unit)
            for part, unit in ((fit.per_flop, "FLOP"), (fit.per_byte, "B"))
            if part.low > 0 and units.is_known(part.low, part.high)
        ]
        if not speeds and not units.is_known(fit.launch.low, fit.launch.high):
            continue
        costs = [between(fit.launch, units.seconds) + " before any work"]
        costs += [" and ".join(speeds)] if speeds else []
        yield (
            f"As fitted, a step on {quoted(device)} costs {', then '.join(costs)}; the "
            f"fit misses a "
            f"measured step by {units.percent(fit.misses)} at most."
        )
        trusted = fit.launch.low > 0 and fit.misses <= _TRUSTED
        if trusted and device == result.devices[1] and result.curve:
            narrowest, *_, widest = (point.size for point in result.curve.points)
            shares = [
                f"{units.percent(fit.launch.value / fit.at(size.cost))} of a step at "
                f"{size.name}"
                for size in (narrowest, widest)
            ]
            yield (
                f"There the part before any work is {' and '.join(shares)}: more "
                "arithmetic units do not make that part shorter; a faster core, XLA "
                "and several steps in a call can."
            )


def _placed(result: Result, curve: Curve) -> Iterator[str]:
    """What lies beside the curve: another batch, and the reader's models."""
    along = {point.size.width: point.gain for point in curve.points}
    for point in result.off_curve:
        size, usual = point.size, along.get(point.size.width)
        if usual and usual.ends and point.gain.ends:
            yield (
                f"With {size.batch:,} instead of {curve.batch:,} examples a batch, "
                f"{size.name} gains {brief(point.gain)} instead of {usual.interval}."
            )
    for dot in result.dots:
        gain = units.ratio_between(dot.gain.value, dot.gain.low, dot.gain.high)
        width = f"width {units.significant(dot.width)}"
        on_curve = units.ratio(curve.at(dot.width).value)
        yield (
            f"A step of {quoted(dot.name)} has as much arithmetic as {width}; it "
            f"gains {gain}, where the curve has {on_curve}."
            if dot.measured
            else f"A dense network with {dot.name} is like {width}: by the curve it "
            f"gains {gain}. It was not measured itself."
        )


def _wire(measured: Measurement) -> Iterator[str]:
    """What bringing batches to the GPU costs, and what makes it cheaper."""
    resident = next((c for c in measured.comparisons if c.variant == FLOATS), None)
    if resident is None:
        return
    if resident.is_noise and resident.ends:
        yield f"Bringing each batch to the GPU as floats: {brief(resident)}."
    elif resident.ends:
        middle, low, high = (
            max(0.0, 1 - r) for r in (resident.ratio, resident.high, resident.low)
        )
        share = units.between(middle, low, high, units.percent)
        yield f"Of a step, bringing each batch to the GPU as floats takes {share}."
    for name, way in ((BYTES, "As bytes"), (AHEAD, "Ahead of the step")):
        compared = measured.compare(name, FLOATS)
        if compared and compared.ends:
            yield f"{way} instead, the training runs at {brief(compared)}."


def _next(result: Result, crossing: Crossing) -> str:
    if result.curve and crossing.kind == "always":
        narrowest = result.curve.points[0].size.width
        return f"Ask again with a `narrowest` below {narrowest}."
    # What makes a step larger, where the run has shown that it helps.
    paying = [point.size for point in result.off_curve if point.says == "pays"]
    if paying:
        return (
            f"Or make a step larger: with `batch_size={paying[-1].batch}` "
            f"{paying[-1].name} pays. `perfkit run execution-mode` measures what "
            "several steps in a call bring."
        )
    return _ONE_CORE if result.devices[0] == "one core" else ""
