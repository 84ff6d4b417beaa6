"""What a run over precisions means."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perfkit import units
from perfkit.experiments.mixed_precision import numbers
from perfkit.experiments.mixed_precision.numbers import Alike, Pairs
from perfkit.experiments.mixed_precision.work import GROWTH
from perfkit.experiments.shared.precision import FLOAT32, NO_TF32, PRECISIONS
from perfkit.experiments.shared.race import Choice, Race
from perfkit.experiments.shared.words import listed, quoted
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Measurement

_PLAIN = {p.name: p for p in PRECISIONS.values() if p.kind == "precision"}
# What a precision is called where it is advised, and what to write for it.
_CALLED = {name: name.removeprefix("mixed_") for name in _PLAIN}
CHOICES = {
    name: Choice(f"Train with {_CALLED[name]}.", functools.partial(getattr, p, "line"))
    for name, p in _PLAIN.items()
}
_LAST_LAYER = (
    "The line stands before the model is built. Give its last layer "
    '`dtype="float32"`: a loss needs the precision.'
)
_UNKNOWN = "Whether it learns what float32 learns is not known yet."
_SPOILT: tuple[Alike, ...] = ("differs", "lost")
_ALIKE: dict[Alike, str] = {
    "equal within rounding": "it learns the same",
    "less apart than two seeds": "its losses differ less than two seeds do",
    "differs": "but its losses are others",
    "lost": "but its loss became NaN",
}


def judge(measured: Measurement) -> Verdict:
    """Say which precision trains fastest, and whether it learns what float32 learns."""
    pairs = numbers.pairs(measured.trials)
    alike = {one.precision: one.alike for one in pairs}
    race = fastest = Race(measured, CHOICES, "examples")
    # The next one may learn what the fastest does not.
    left = dict(CHOICES)
    while race.won and alike.get(race.winner) in _SPOILT:
        del left[race.winner]
        race = Race(measured, left, "examples")
    if not race.won:
        race = fastest
    verdict = race.verdict(
        because=(
            *_expected_and_seen(measured),
            *_full_float32(measured),
            *_eligible(measured.notes),
            *map(_learnt, pairs),
            *_scale(measured),
            *_memory(measured),
        ),
        next=_LAST_LAYER if race.winner.startswith("mixed_") else "",
    )
    if not race.won:
        return verdict
    called, learns = _CALLED[race.winner], alike.get(race.winner)
    if learns is None or learns not in _ALIKE:
        return replace(verdict, warnings=(_UNKNOWN,))
    if learns not in _SPOILT:
        return replace(verdict, headline=f"Train with {called}: {_ALIKE[learns]}.")
    return replace(
        verdict,
        headline=f"Keep float32: {called} is faster, {_ALIKE[learns]}.",
        much=verdict.much.replace("This training then", f"With {called} it"),
        edits=(),
        next="Train longer with both, and compare the losses.",
    )


def beforehand(notes: Mapping[str, Any]) -> Verdict:
    """Say what to expect before a run, from the notes of its preparation."""
    expected = numbers.expectations(notes).items()
    faster = [name for name, one in expected if one.expect == "faster"]
    headline = "No precision is sure to be faster than float32 on this hardware."
    if faster:
        headline = f"Expect {listed(faster)} to be faster than float32 here."
    words = ", ".join(f"{quoted(name)} {one.expect}" for name, one in expected)
    reasons = (
        f"Of {quoted(name)} expect: {one.expect}, because {one.because}."
        for name, one in expected
    )
    return Verdict(
        headline=headline,
        much=f"By hardware alone: {words}.",
        because=(*reasons, *_eligible(notes)),
    )


def _eligible(notes: Mapping[str, Any]) -> Iterator[str]:
    """Which layers can gain from 16 bits, and why the others cannot."""
    layers = numbers.layers_of(notes)
    share = numbers.share(layers)
    if share is None:
        return
    hindered = [f"{quoted(la.name)} {la.hindrance}" for la in layers if la.hindrance]
    but = f"; {', '.join(hindered)}" if hindered else ""
    yield (
        f"By shapes, {units.percent(share)} of the multiplications are in layers that "
        f"compute in 16 bits with sides that are multiples of {numbers.BLOCK}{but}."
    )


def _learnt(one: Pairs) -> str:
    """Whether a precision learnt what float32 learnt, with the numbers."""
    name, seeds = quoted(one.precision), len(one.losses)
    trainings = f"{seeds} pair{'s' if seeds > 1 else ''} of trainings"
    if one.lost:
        where = f"In {trainings} the" if seeds else "The"
        return f"{where} loss of {name} became NaN."
    half, between = one.half_width, ""
    if half is not None:
        low, high = one.difference - half, one.difference + half
        between = f" ({low:+.4f} to {high:+.4f})"
    usual = one.usual[:, -1]
    return (
        f"Losses of {name} against {FLOAT32}: {one.alike}. In {trainings} alike in all "
        f"else it adds {one.difference:+.4f}{between} to the loss by step "
        f"{one.steps[-1]}, which is {usual.min():.3f} to {usual.max():.3f} in "
        f"{FLOAT32} from seed to seed."
    )


def _expected_and_seen(measured: Measurement) -> Iterator[str]:
    compared = {one.variant: one for one in measured.comparisons}
    for name, expected in numbers.expectations(measured.notes).items():
        if name not in compared:
            continue
        ratio, end = compared[name], ""
        if expected.expect != "open" and ratio.verdict != "too noisy to say":
            same = ratio.verdict.removesuffix(" shown") == expected.expect
            end = ", as expected" if same else ", not as expected"
        yield (
            f"Expected of {quoted(name)}: {expected.expect}, because "
            f"{expected.because}. Seen: {ratio.judgement}{end}."
        )


def _full_float32(measured: Measurement) -> Iterator[str]:
    """What 16 bits gain against float32 without TF32, which hides a part of it."""
    for name in _PLAIN:
        found = measured.compare(name, NO_TF32) if name.startswith("mixed_") else None
        if found:
            yield (
                f"Against {quoted(NO_TF32)}, {quoted(name)} reaches {found.interval} "
                f"the rate: {found.judgement}. TF32 is on by default, in "
                f"{quoted(FLOAT32)} too."
            )


def _scale(measured: Measurement) -> Iterator[str]:
    scale = numbers.scale(measured.trials)
    if scale is None:
        return
    steps = ", ".join(map(str, scale.skipped[:4])) + ", …" * (len(scale.skipped) > 4)
    at = f" (at step {steps})" if scale.skipped else ""
    yield (
        f"The loss scale of float16, with {quoted(scale.model)} and doubled every "
        f"{GROWTH} good steps instead of every 2,000, went from "
        f"{scale.scales[0]:,.0f} up to {max(scale.scales):,.0f}: {len(scale.skipped)} "
        f"of {len(scale.scales) - 1} steps were skipped{at}, and each halved it."
    )


def _memory(measured: Measurement) -> Iterator[str]:
    held = numbers.memory(measured.trials)
    usual = held.pop(FLOAT32, None)
    for name, peak in held.items():
        if usual is None or name not in _PLAIN:
            continue
        apart = peak.low > usual.high or peak.high < usual.low
        overlap = "" if apart else ", and the trials of the two overlap"
        yield (
            f"Memory at the peak, above the start: {units.size(peak.value)} in "
            f"{quoted(name)}, {units.times(peak.value / usual.value)} times the "
            f"{units.size(usual.value)} of {FLOAT32}{overlap}."
        )
