"""What the ways to run a step mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.execution_mode.ways import (
    BY_DEFAULT,
    FIT,
    REMEDIES,
    UNWATCHED,
    VALIDATION_SHARE,
    WAYS,
)
from perfkit.experiments.shared.loops import NOTE
from perfkit.experiments.shared.words import (
    failures,
    interval,
    listed,
    longer,
    noise,
    quoted,
    ratio,
    rounds,
)
from perfkit.findings.record import Verdict
from perfkit.measure.pay_back import pay_back, typical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perfkit.experiments.execution_mode.ways import Kind
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.pay_back import PayBack
    from perfkit.measure.statistics import Comparison, Timing


def grounds(measured: Measurement, *, batch: int, epoch: int) -> tuple[str, ...]:
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


# What to write instead of what is traced again and again.
_TRACED_ONCE = {
    "Python number": "step(features, labels, tf.constant(number))",
    "changing shapes": "@tf.function(reduce_retracing=True)",
    "made anew": "step = tf.function(step)  # once, before the loop",
    "ragged last batch": "dataset.batch(batch, drop_remainder=True)",
}
_QUIETER = "End what else runs on this machine, or give the run more seconds."
# What to write where an observer is expensive: without it, as it was timed, ...
_WITHOUT = {
    "metrics": "model.compile(..., metrics=None)",
    "progress bar": "model.fit(..., verbose=0)",
}
# ... or less often, where nobody trains without it.
_RARER = {
    "callback": "def on_epoch_end(self, epoch, logs=None): ...  # not after each batch",
    "validation": "model.fit(..., validation_data=held_back, validation_freq=5)",
    "histograms": "keras.callbacks.TensorBoard(folder, histogram_freq=5)",
}


def judge(measured: Measurement, *, batch: int, epoch: int) -> Verdict:
    """Say what a run shows: of its modes, or else of retracing, or else of observers.

    Args:
        measured: The run.
        batch: Examples in a batch.
        epoch: Steps in an epoch that observers watch.
    """
    modes = of_kind(measured, "mode")
    because = grounds(measured, batch=batch, epoch=epoch)
    if len(modes) > 1:
        return _of_modes(measured, modes, because, batch)
    if guilty := _compared(measured, {name: WAYS[name].against for name in REMEDIES}):
        return _of_retracing(measured, guilty, because)
    observers = of_kind(measured, "observer")
    if watched := _compared(measured, dict.fromkeys(observers, UNWATCHED)):
        return _of_observers(measured, watched, because)
    return Verdict(
        headline="Nothing could be compared.",
        because=because,
        next="Look at how the trials ended, or give the run more seconds.",
    )


def _of_modes(
    measured: Measurement, modes: tuple[str, ...], because: tuple[str, ...], batch: int
) -> Verdict:
    best, *ties = measured.fastest(modes)
    baseline = measured.baseline
    compared = measured.compare(best.variant, baseline)
    if compared is None or compared.verdict != "faster" or best.variant == baseline:
        return Verdict(
            headline=_not_won(measured, best, ties, compared, batch),
            because=because,
            next=_tied_with(measured, ties)[1] or _stay(compared, baseline),
        )
    paid = pay_back(measured, best.variant, baseline)
    pays = f"; it {paying(paid, batch)}" if paid else ""
    return Verdict(
        headline=(
            f"{quoted(best.variant)} trains fastest here{_tied(ties)}: "
            f"{_step(best, batch)}, {ratio(compared)} the examples per "
            f"second of {quoted(baseline)} ({interval(compared)}){pays}."
        ),
        because=because,
        next=f"Change this line: `{WAYS[best.variant].advice}`."
        f"{_against_fit(measured, best.variant)}",
        winner=best.variant,
    )


def _against_fit(measured: Measurement, best: str) -> str:
    """What is left to gain for who calls ``fit`` already, as most do."""
    compared = measured.compare(best, FIT)
    if compared is None or best == FIT or measured.baseline == FIT:
        return ""
    return (
        f" Against {quoted(FIT)} it reaches {ratio(compared)} "
        f"({interval(compared)}): {compared.judgement}."
    )


def _tied_with(measured: Measurement, ties: Sequence[Timing]) -> tuple[str, str]:
    """Of which modes noise leaves open whether they are faster, and what to do."""
    names = (tie.variant for tie in ties if tie.variant != measured.baseline)
    found = (measured.compare(name, measured.baseline) for name in names)
    return _doubt([one for one in found if one is not None])


def _not_won(
    measured: Measurement,
    best: Timing,
    ties: Sequence[Timing],
    compared: Comparison | None,
    batch: int,
) -> str:
    baseline = measured.baseline
    name = quoted(baseline)
    if best.variant == baseline:
        if ties:
            return (
                f"No mode is shown to be faster than {name}, which takes "
                f"{_step(best, batch)}{_tied_with(measured, ties)[0]}."
            )
        return f"{name} is the fastest mode here: {_step(best, batch)}."
    if compared is None:
        return (
            f"{quoted(best.variant)} takes {_step(best, batch)}; no round "
            f"compares it with {name}."
        )
    reached = (
        f"the best, {quoted(best.variant)}, reaches {ratio(compared)}"
        f" ({interval(compared)})"
    )
    if compared.verdict == "too noisy to say":
        return f"Too noisy to say whether any mode is faster than {name}: {reached}."
    return f"No mode is shown to be faster than {name}: {reached}."


def _stay(compared: Comparison | None, baseline: str) -> str:
    if compared is not None and compared.verdict == "too noisy to say":
        return _QUIETER
    return f"Keep `{WAYS[baseline].advice}`."


def _compared(
    measured: Measurement, against: Mapping[str, str]
) -> tuple[Comparison, ...]:
    """The comparisons of variants with others, as far as both were timed."""
    pairs = ((name, other) for name, other in against.items() if name != other)
    found = (measured.compare(name, other) for name, other in pairs)
    return tuple(one for one in found if one is not None)


def _of_retracing(
    measured: Measurement, guilty: tuple[Comparison, ...], because: tuple[str, ...]
) -> Verdict:
    slower = [found for found in guilty if found.verdict == "slower"]
    if not slower:
        doubt, quieter = _doubt(guilty)
        return Verdict(
            headline="No way of having a step traced again is shown to cost anything "
            f"in the steady state here{doubt}.",
            because=because,
            next=quieter or "Look at how often each was traced, and at its first call.",
        )
    worst = min(slower, key=lambda found: found.ratio)
    seen = traces(measured, worst.variant)
    return Verdict(
        headline=(
            f"{quoted(worst.variant)} costs most{_as_dear(measured, worst, slower)}: "
            f"{seen['traces']:,} traces in {seen['steps']:,} steps, and a step takes "
            f"{_times(worst)} as long as with {quoted(worst.baseline)}."
        ),
        because=because,
        next=f"Change this line: `{_TRACED_ONCE[worst.variant]}`.",
    )


def _as_dear(measured: Measurement, worst: Comparison, slower: list[Comparison]) -> str:
    """What is not shown to cost less than the worst; "" where all of it is."""
    others = (found.variant for found in slower if found is not worst)
    held = {name: measured.compare(name, worst.variant) for name in others}
    tied = [name for name, c in held.items() if c is None or c.verdict != "faster"]
    return f", and is not shown to differ from {listed(tied)}" if tied else ""


def _times(compared: Comparison) -> str:
    """How many times as long it takes, with what is left open."""
    times, sure = longer(compared)
    return f"{times} times ({sure}, {rounds(compared)})"


def _of_observers(
    measured: Measurement, compared: tuple[Comparison, ...], because: tuple[str, ...]
) -> Verdict:
    slower = [found for found in compared if found.verdict == "slower"]
    if not slower:
        doubt, quieter = _doubt(compared)
        return Verdict(
            headline=f"No observer is shown to slow this training down{doubt}.",
            because=because,
            next=quieter
            or "Keep those that you read: each alone costs less than a tenth here.",
        )
    dearest = min(slower, key=lambda found: found.ratio)
    return Verdict(
        headline=(
            f"{quoted(dearest.variant)} is the most expensive observer here"
            f"{_as_dear(measured, dearest, slower)}: with it the same training takes "
            f"{slowdown(dearest)}, over {rounds(dearest)}."
        ),
        because=because,
        next=_cheaper(dearest.variant),
    )


def _cheaper(observer: str) -> str:
    if observer in _WITHOUT:
        return f"Change this line: `{_WITHOUT[observer]}`."
    return (
        f"Let it work less often: `{_RARER[observer]}`. Only leaving it out was timed, "
        "so this gains less."
    )


def _doubt(compared: Sequence[Comparison]) -> tuple[str, str]:
    """Of what noise leaves all open, and what to do then; both "" where of nothing."""
    noisy = [c.variant for c in compared if c.verdict == "too noisy to say"]
    if not noisy:
        return "", ""
    return f"; of {listed(noisy)} it is too noisy to say", _QUIETER


def _tied(ties: Sequence[Timing]) -> str:
    if not ties:
        return ""
    others = listed([tie.variant for tie in ties])
    return f", and is not shown to differ from {others}"


def _step(timing: Timing, batch: int) -> str:
    return f"{units.seconds(batch / timing.rate)} a step"
