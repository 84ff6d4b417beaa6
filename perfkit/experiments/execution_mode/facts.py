"""What a run of execution modes shows besides the rates: facts, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.execution_mode.fits import BY_DEFAULT
from perfkit.experiments.execution_mode.observers import VALIDATION_SHARE
from perfkit.experiments.execution_mode.ways import FIT, REMEDIES, UNWATCHED, WAYS
from perfkit.experiments.shared.traces import NOTE
from perfkit.experiments.shared.words import failures, interval, longer, noise, quoted
from perfkit.measure.pay_back import pay_back, typical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.execution_mode.ways import Kind
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.pay_back import PayBack
    from perfkit.measure.statistics import Comparison


def because(measured: Measurement, *, batch: int, epoch: int) -> tuple[str, ...]:
    """The facts that a verdict rests on."""
    return (
        *noise(measured),
        *_calls(measured, batch),
        *_pay_backs(measured, batch),
        *_by_default(measured),
        *_retraced(measured),
        *_remedies(measured),
        *_prices(measured, epoch),
        *failures(measured),
    )


def of_kind(measured: Measurement, kind: Kind) -> tuple[str, ...]:
    """The timed ways of a kind, in their usual order."""
    timed = {timing.variant for timing in measured.timings}
    return tuple(w.name for w in WAYS.values() if w.kind == kind and w.name in timed)


def paying(paid: PayBack, batch: int) -> str:
    """When a mode has paid back, after "it"."""
    if paid.paying == "at once":
        return "is ahead from its first call on"
    if paid.examples is None:
        return (
            "never pays back, because its steps are slower"
            if paid.paying == "never"
            else "is not shown to pay back"
        )
    return f"has paid back after {paid.steps(batch)}"


def traces(measured: Measurement, name: str) -> dict[str, Any]:
    """How often a way's step was called and traced, over all trials, and why."""
    told = [t.notes[NOTE] for t in measured.of(name) if NOTE in t.notes]
    causes = [cause for one in told for cause in one["because"]]
    return {
        "steps": sum(one["steps"] for one in told),
        "traces": sum(one["traces"] for one in told),
        "trials": len(told),
        "because": list(dict.fromkeys(causes)),
    }


def slowdown(compared: Comparison) -> str:
    """A comparison as the time that the variant's work takes, in words."""
    times, sure = longer(compared)
    return f"{times} times as long ({sure})"


def _calls(measured: Measurement, batch: int) -> Iterator[str]:
    told = []
    for name in of_kind(measured, "mode"):
        known, timing = typical(measured, name), measured.timing(name)
        if known and timing:
            first = units.seconds(timing.first_call_s)
            told.append(f"{quoted(name)} {first}, {units.seconds(known.each * batch)}")
    if told:
        yield f"First call and steady step: {'; '.join(told)}."


def _pay_backs(measured: Measurement, batch: int) -> Iterator[str]:
    for name in of_kind(measured, "mode"):
        paid = pay_back(measured, name, measured.baseline)
        if paid and name != measured.baseline:
            yield (
                f"Against {quoted(measured.baseline)}, {quoted(name)} "
                f"{paying(paid, batch)}."
            )


def _by_default(measured: Measurement) -> Iterator[str]:
    told = [t.notes[BY_DEFAULT] for t in measured.trials if BY_DEFAULT in t.notes]
    if told:
        uses = "compiles with XLA" if told[-1] else "uses no XLA"
        yield (
            f'{quoted(FIT)} is what `compile` gives by default, `jit_compile="auto"`: '
            f"here Keras {uses} then. It uses XLA where TensorFlow has another device "
            "than the processor and every layer of the model can be compiled."
        )


def _retraced(measured: Measurement) -> Iterator[str]:
    for name in of_kind(measured, "retracing"):
        seen = traces(measured, name)
        if not seen["trials"]:
            continue
        times = "once" if seen["traces"] == 1 else f"{seen['traces']} times"
        trials = f"{seen['trials']} trials" if seen["trials"] > 1 else "one trial"
        cause = f" ({seen['because'][0]})" if seen["because"] else ""
        yield (
            f"{quoted(name)} was traced {times} in {seen['steps']:,} steps in {trials}"
            f"{cause}."
        )


def _remedies(measured: Measurement) -> Iterator[str]:
    for guilty, remedy in REMEDIES.items():
        compared = measured.compare(remedy, guilty)
        if compared:
            yield (
                f"{quoted(remedy)} runs at {units.ratio(compared.ratio)} the rate of "
                f"{quoted(guilty)} ({interval(compared)}; {compared.judgement})."
            )


def _prices(measured: Measurement, epoch: int) -> Iterator[str]:
    watched = [n for n in of_kind(measured, "observer") if n != UNWATCHED]
    for name in watched:
        compared = measured.compare(name, UNWATCHED)
        if compared:
            yield (
                f"With {quoted(name)} the same training takes {slowdown(compared)}: "
                f"{_price(compared)}."
            )
    if watched:
        yield (
            f"An epoch had {epoch} steps here; what works at its end costs less the "
            f"longer it is. Validation looked at {max(1, epoch // VALIDATION_SHARE)} "
            "batches."
        )


def _price(compared: Comparison) -> str:
    return "a cost that is shown" if compared.verdict == "slower" else compared.verdict
