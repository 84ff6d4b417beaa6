"""What a run over precisions means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.mixed_precision import numbers
from perfkit.experiments.mixed_precision.numbers import ROUNDING, pairs
from perfkit.experiments.shared.precision import FLOAT32, GROWTH, NO_TF32, PRECISIONS
from perfkit.experiments.shared.words import (
    failures,
    interval,
    listed,
    noise,
    quoted,
    ratio,
)
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perfkit.experiments.mixed_precision.numbers import Pairs
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing


def grounds(measured: Measurement) -> Iterator[str]:
    """The facts that a verdict rests on."""
    yield from noise(measured)
    yield from _expected_and_seen(measured)
    yield from _full_float32(measured)
    yield from eligible(measured.notes)
    yield from (learnt(one) for one in pairs(numbers.curves(measured.trials)))
    yield from _scale(measured)
    yield from _memory(measured)
    yield from failures(measured)


def beforehand(notes: Mapping[str, Any]) -> Iterator[str]:
    """What can be said before a run, from the notes of its preparation."""
    for name, (expect, why) in numbers.expectations(notes).items():
        yield f"Of {quoted(name)} expect: {expect}, because {why}."
    yield from eligible(notes)


def eligible(notes: Mapping[str, Any]) -> Iterator[str]:
    """Which layers can gain from 16 bits, and why the others cannot."""
    layers = numbers.told(notes)
    share = numbers.share(layers)
    if share is None:
        return
    hindered = [f"{quoted(la.name)} {la.hindrance}" for la in layers if la.hindrance]
    but = f"; {', '.join(hindered)}" if hindered else ""
    yield (
        f"By shapes, {units.significant(100 * share)} % of the multiplications are in "
        "layers that compute in 16 bits with sides that are multiples of "
        f"{numbers.BLOCK}{but}."
    )


def learnt(one: Pairs) -> str:
    """Whether a precision learnt what float32 learnt, with the numbers."""
    name, seeds = quoted(one.precision), len(one.losses)
    trainings = f"{seeds} pair{'s' if seeds > 1 else ''} of trainings"
    if one.lost:
        return f"In {trainings} the loss of {name} became something that is no number."
    ends = f"{one.usual[:, -1].min():.3f} to {one.usual[:, -1].max():.3f}"
    half = one.half_width
    between = (
        f" ({one.difference - half:+.4f} to {one.difference + half:+.4f})"
        if half is not None
        else ""
    )
    rounding = ROUNDING.get(one.precision)
    unit = f", one rounding by {_share(rounding)}" if rounding else ""
    return (
        f"Losses of {name} against {FLOAT32}: {one.alike}. In {trainings} alike in all "
        f"else it adds {one.difference:+.4f}{between} to the loss by step "
        f"{one.steps[-1]}, which is {ends} in {FLOAT32}; the two differ by up to "
        f"{_share(one.largest)}{unit}."
    )


def _share(value: float) -> str:
    return f"{units.significant(100 * value, 2)} %"


def _expected_and_seen(measured: Measurement) -> Iterator[str]:
    compared = {one.variant: one for one in measured.comparisons}
    for name, (expect, why) in numbers.expectations(measured.notes).items():
        said = f"Expected of {quoted(name)}: {expect}, because {why}."
        if found := compared.get(name):
            against = "" if found.baseline == FLOAT32 else f" of {found.baseline}"
            yield (
                f"{said} Seen: {found.verdict}, {units.ratio(found.ratio)} the rate"
                f"{against} ({interval(found)}){_as_expected(expect, found)}."
            )


def _as_expected(expect: str, found: Comparison) -> str:
    if expect == "open" or found.verdict == "too noisy to say":
        return ""
    seen = found.verdict.removesuffix(" shown")
    return ", as expected" if seen == expect else ", not as expected"


def _full_float32(measured: Measurement) -> Iterator[str]:
    """What 16 bits gain against float32 without TF32, which hides a part of it."""
    for precision in PRECISIONS.values():
        name = precision.name
        if not name.startswith("mixed_") or precision.kind != "precision":
            continue
        if found := measured.compare(name, NO_TF32):
            yield (
                f"Against {quoted(NO_TF32)}, {quoted(name)} reaches "
                f"{units.ratio(found.ratio)} the rate ({interval(found)}; "
                f"{found.verdict}). TF32 is on by default, in {quoted(FLOAT32)} too."
            )


def _scale(measured: Measurement) -> Iterator[str]:
    scale = numbers.scale(measured.trials)
    if scale is None:
        return
    skipped = scale.skipped
    steps = ", ".join(f"{step}" for step in skipped[:4])
    more = ", …" if len(skipped) > 4 else ""
    at = f" (at step {steps}{more})" if skipped else ""
    yield (
        f"The loss scale of float16, with {quoted(scale.model)} and doubled every "
        f"{GROWTH} good steps instead of every 2,000, went from "
        f"{scale.scales[0]:,.0f} up to {max(scale.scales):,.0f}: "
        f"{len(skipped)} of {len(scale.scales) - 1} steps were skipped{at}, and each "
        "halved it."
    )


def _memory(measured: Measurement) -> Iterator[str]:
    held = numbers.memory(measured.trials)
    forecast = numbers.numbers(measured.notes, "forecast")
    usual = held.pop(FLOAT32, None)
    if usual is None:
        return
    for name, (middle, low, high) in held.items():
        if name not in PRECISIONS or PRECISIONS[name].kind != "precision":
            continue
        apart = low > usual[2] or high < usual[1]
        claim = "" if apart else ", and the trials of the two overlap"
        by_shapes = (
            f"; from shapes alone one would say "
            f"{units.ratio(forecast[name] / forecast[FLOAT32])}"
            if {name, FLOAT32} <= forecast.keys()
            else ""
        )
        yield (
            f"Memory at the peak, above the start: {_sizes(middle, low, high)} in "
            f"{quoted(name)} against {_sizes(*usual)} in {FLOAT32}, "
            f"{units.ratio(middle / usual[0])}{claim}{by_shapes}."
        )


def _sizes(middle: float, low: float, high: float) -> str:
    return units.between(middle, low, high, units.size)


_QUIETER = "End what else runs on this machine, or give the run more seconds."
_LOSSES = {
    "equal within rounding": "; its losses equal those of float32 within rounding",
    "less apart than two seeds": (
        "; its losses differ from those of float32 by less than another seed changes"
    ),
    "too noisy to say": "; whether its losses differ is too noisy to say",
    "differs": "; but its losses differ from those of float32",
    "lost": "; but its loss became something that is no number",
}


def judge(measured: Measurement, *, batch: int) -> Verdict:
    """Say which precision trains fastest, and whether it learns what float32 learns.

    Args:
        measured: The run.
        batch: Examples in a batch.
    """
    names = tuple(p.name for p in PRECISIONS.values() if p.kind == "precision")
    because = tuple(grounds(measured))
    ranked = measured.fastest(names)
    if not ranked or measured.timing(FLOAT32) is None or len(measured.timings) < 2:
        return Verdict(
            headline="No two precisions could be compared.",
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best, *ties = ranked
    compared = measured.compare(best.variant, FLOAT32)
    if best.variant == FLOAT32 or compared is None or compared.verdict != "faster":
        return Verdict(
            headline=_not_won(measured, ranked, compared, batch),
            because=because,
            next=_stay(measured, ranked, compared),
        )
    return Verdict(
        headline=(
            f"{quoted(best.variant)} trains fastest here{_tied(ties)}: "
            f"{_step(best, batch)}, {ratio(compared)} the examples per "
            f"second of {quoted(FLOAT32)} ({interval(compared)})"
            f"{_losses(measured, best.variant)}."
        ),
        because=because,
        next=_change(measured, best.variant),
        winner=best.variant,
    )


def _not_won(
    measured: Measurement,
    ranked: Sequence[Timing],
    compared: Comparison | None,
    batch: int,
) -> str:
    best = ranked[0]
    if best.variant != FLOAT32 and compared is not None:
        reached = (
            f"the best, {quoted(best.variant)}, reaches {ratio(compared)} "
            f"of it ({interval(compared)})"
        )
        if compared.verdict == "too noisy to say":
            return f"Too noisy to say what is faster than {quoted(FLOAT32)}: {reached}."
        return f"No precision is shown to be faster than {quoted(FLOAT32)}: {reached}."
    takes = _step(best, batch)
    if len(ranked) > 1:
        return (
            f"No precision is shown to be faster than {quoted(FLOAT32)}, which takes "
            f"{takes}."
        )
    return f"{quoted(FLOAT32)} is the fastest precision here: {takes}."


def _stay(
    measured: Measurement, ranked: Sequence[Timing], compared: Comparison | None
) -> str:
    others = (timing.variant for timing in ranked if timing.variant != FLOAT32)
    found = (compared, *(measured.compare(name, FLOAT32) for name in others))
    noisy = any(one and one.verdict == "too noisy to say" for one in found)
    return _QUIETER if noisy else f"Keep `{PRECISIONS[FLOAT32].line}`, the default."


def _change(measured: Measurement, name: str) -> str:
    if _alike(measured, name) in ("differs", "lost"):
        return "Do not change it for speed alone: train longer, and compare the losses."
    line = PRECISIONS[name].line
    if not name.startswith("mixed_"):
        return f"Write `{line}` before the model is built."
    return (
        f"Write `{line}` before the model is built, and give its last layer "
        '`dtype="float32"`.'
    )


def _losses(measured: Measurement, name: str) -> str:
    return _LOSSES.get(_alike(measured, name), "")


def _alike(measured: Measurement, name: str) -> str:
    found = pairs(numbers.curves(measured.trials))
    return next((one.alike for one in found if one.precision == name), "")


def _tied(ties: Sequence[Timing]) -> str:
    if not ties:
        return ""
    others = listed([tie.variant for tie in ties])
    return f", and is not shown to differ from {others}"


def _step(timing: Timing, batch: int) -> str:
    return f"{units.seconds(batch / timing.rate)} a step"
