"""What a run that fed images shows besides the rates: the numbers."""

import statistics
from typing import Any

from perfkit import units
from perfkit.experiments.data_pipeline.variants import SYNTHETIC, VARIANTS, Method
from perfkit.experiments.data_pipeline.work import DROPPED, RESTARTED
from perfkit.experiments.shared.anatomy import busiest
from perfkit.measure.measurement import OWN, Measurement
from perfkit.measure.statistics import Comparison

# Marks the variants of a run that feeds a model in others.
ALONE = ", alone"
# A cache may fill this share of the machine's memory.
_MEMORY_SHARE = 0.5


def timed_methods(measured: Measurement) -> list[Method]:
    """The variants that feed a model and were timed."""
    return [VARIANTS[t.variant] for t in measured.timings if t.variant in VARIANTS]


def contenders(measured: Measurement) -> tuple[str, ...]:
    """The variants that were timed and may be called the fastest."""
    own = (OWN,) if measured.timing(OWN) else ()
    return own + tuple(
        one.name
        for one in timed_methods(measured)
        if not one.excluded and not too_large(measured, one)
    )


def too_large(measured: Measurement, method: Method) -> str:
    """Say why a cache cannot hold all images there are; "" where it can."""
    images, memory = measured.notes.get("images"), measured.notes.get("memory")
    if not method.keeps or not images or not memory:
        return ""
    whole = images["decoded_bytes"] * images["found"] / images["count"]
    if whole <= _MEMORY_SHARE * memory:
        return ""
    return (
        f"all {images['found']:,} images decoded take {units.size(whole)}, and this "
        f"machine has {units.size(memory)}"
    )


def without_input(measured: Measurement, variant: str) -> Comparison | None:
    """How a variant's rate compares with the same training without any input.

    This, and not the wait, says what the input costs: where the processor computes the
    model too, decoding takes its cores while hardly a step waits.
    """
    return measured.compare(variant, SYNTHETIC)


def waiting(measured: Measurement, variant: str) -> float | None:
    """Which share of its steps' time a variant waits for data; None where unknown."""
    waited = spent = 0.0
    for trial in measured.of(variant):
        if trial.outcome == "completed" and "input" in trial.parts:
            # The first tick traces the step.
            waited += sum(trial.parts["input"][1:])
            spent += sum(ended - began for began, ended, _ in trial.worked[1:])
    return waited / spent if spent else None


def on_processor(measured: Measurement) -> bool:
    """Whether the trials saw no GPU, so that the processor computed the model."""
    places = [trial.notes.get("where") for trial in measured.trials]
    return not any(place["gpus"] for place in places if place)


def epoch_end(measured: Measurement, variant: str) -> tuple[float, float]:
    """Seconds to drop an iterator and to the next one's first batch, the medians.

    Both are 0 where no epoch ended in a trial.
    """
    ended = [
        (trial.pauses[DROPPED][0], trial.pauses[RESTARTED][0])
        for trial in measured.of(variant)
        if trial.pauses.get(DROPPED) and trial.pauses.get(RESTARTED)
    ]
    dropped, restarted = zip(*ended or [(0.0, 0.0)], strict=True)
    return statistics.median(dropped), statistics.median(restarted)


def best_that_decode(measured: Measurement) -> dict[str, str]:
    """The fastest variant that decodes whole images, and the one that does not."""
    timed = {timing.variant for timing in measured.timings}
    # Without a model where that was measured: the limit has none either.
    mark = ALONE if any(name.endswith(ALONE) for name in timed) else ""
    found = {}
    for decodes, what in (
        ("square", "only the square it needs"),
        ("whole", "them all"),
    ):
        methods = [
            one.name + mark for one in VARIANTS.values() if one.decodes == decodes
        ]
        if among := tuple(name for name in methods if name in timed):
            found[what] = measured.fastest(among)[0].variant
    return found


def busiest_stage(measured: Measurement, variant: str) -> dict[str, Any] | None:
    """The stage of a variant's plan with most of the work; None where it has none."""
    plans = [trial.notes.get("plan", {}) for trial in measured.of(variant)]
    return next(filter(None, map(busiest, reversed(plans))), None)
