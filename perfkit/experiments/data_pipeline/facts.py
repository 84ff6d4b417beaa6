"""What a run that fed images shows besides the rates: facts, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.data_pipeline import numbers
from perfkit.experiments.data_pipeline.ways import (
    BASELINE,
    DECODE_LIMIT,
    SYNTHETIC,
    WAYS,
)
from perfkit.experiments.shared.words import failures, noise, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison

# An end of epoch that takes less is not worth a sentence.
_EPOCH_END_S = 0.05
_LEFT = {"bytes": "scaling and brightening", "layers": "mirroring and brightening"}


def because(measured: Measurement, best: str) -> tuple[str, ...]:
    """The facts that a verdict naming ``best`` rests on."""
    return (
        *noise(measured),
        *_rewrites(measured),
        *_waits(measured, best),
        *_ceiling(measured, best),
        *_limit(measured),
        *_busiest_stage(measured, best),
        *_costs(measured, best),
        *_epoch_ends(measured, best),
        *_out_of_contest(measured),
        *images_fed(measured),
        *failures(measured),
    )


def _rewrites(measured: Measurement) -> Iterator[str]:
    """What TensorFlow does to the obvious code by itself."""
    compared = measured.compare("naive as written", BASELINE)
    if compared and not compared.is_noise:
        yield (
            f"TensorFlow rewrites {quoted(BASELINE)} by itself before it runs; with "
            f"that switched off it reaches {_share(compared)} of its rate."
        )


def _waits(measured: Measurement, best: str) -> Iterator[str]:
    shares = {
        name: numbers.waiting(measured, name)
        for name in dict.fromkeys([BASELINE, best])
    }
    told = [
        f"{units.percent(share)} with {quoted(name)}"
        for name, share in shares.items()
        if share is not None
    ]
    if told:
        yield f"Of a training step, the wait for data is {' and '.join(told)}."
    if told and numbers.on_processor(measured):
        yield (
            "The model computes on the same cores as the pipeline, so a short wait is "
            f"no sign that the input is free; the rate of {quoted(SYNTHETIC)} would be "
            "one."
        )


def _ceiling(measured: Measurement, best: str) -> Iterator[str]:
    ceiling = measured.timing(SYNTHETIC)
    compared = numbers.without_input(measured, best)
    if ceiling and compared:
        yield (
            "The same training on one batch that stays in memory reaches "
            f"{units.rate(ceiling.rate, 'images')}; {quoted(best)} reaches "
            f"{_share(compared)} of that."
        )


def _limit(measured: Measurement) -> Iterator[str]:
    limit = measured.timing(DECODE_LIMIT)
    if limit is None:
        return
    told = [
        f"{quoted(name)}, which decodes {what}, {_does(measured, name)} "
        f"{_share(compared)} of that"
        for what, name in numbers.best_that_decode(measured).items()
        if (compared := measured.compare(name, DECODE_LIMIT))
    ]
    yield (
        "; ".join(
            [
                "Cores that decode whole images and do nothing else reach "
                f"{units.rate(limit.rate, 'images')}",
                *told,
            ]
        )
        + "."
    )


def _does(measured: Measurement, variant: str) -> str:
    return "reaches" if numbers.waiting(measured, variant) is None else "trains on"


def _busiest_stage(measured: Measurement, best: str) -> Iterator[str]:
    stage = numbers.busiest_stage(measured, best)
    if stage:
        calls = stage["parallelism"]
        at_once = f", {calls} at a time" if calls else ""
        yield (
            f"By TensorFlow's own clock {units.percent(stage['share'])} of the work of "
            f'{quoted(best)} is in its stage "{stage["name"]}"{at_once}.'
        )


def _epoch_ends(measured: Measurement, best: str) -> Iterator[str]:
    ended = numbers.epoch_end(measured, best)
    if not ended or sum(ended) < _EPOCH_END_S:
        return
    dropped, restarted = (units.seconds(part) for part in ended)
    yield (
        f"An end of epoch costs {quoted(best)} {units.seconds(sum(ended))}, which "
        f"is in no rate here: {dropped} to drop the iterator, {restarted} until "
        "the next one's first batch is done."
    )
    if ended[0] >= _EPOCH_END_S:
        yield (
            "Dropping waits for AUTOTUNE to wake up, which takes longer the longer an "
            "epoch was; with `options.autotune.enabled = False` it takes no time."
        )


def _out_of_contest(measured: Measurement) -> Iterator[str]:
    for way in numbers.timed_ways(measured):
        why = way.excluded or numbers.too_large(measured, way)
        timing = measured.timing(way.name)
        if why and timing:
            yield (
                f"{quoted(way.name)} ({units.rate(timing.rate, 'images')}) does not "
                f"count: {why}."
            )


def _costs(measured: Measurement, best: str) -> Iterator[str]:
    images, way = (
        measured.notes.get("images"),
        WAYS.get(best.removesuffix(numbers.ALONE)),
    )
    if not images or way is None:
        return
    if way.in_model and numbers.waiting(measured, best) is None:
        yield (
            f"{quoted(best)} leaves {_LEFT[way.in_model]} to the model, which was not "
            "run here and would have to do it."
        )
    if way.keeps:
        yield f"{quoted(best)} keeps {units.size(images['decoded_bytes'])} in memory."
    if way.form == "raw":
        yield (
            f"{quoted(best)} reads {units.size(images['decoded_bytes'])} from its "
            f"file, where the images themselves take {units.size(images['bytes'])}."
        )


def images_fed(measured: Measurement) -> Iterator[str]:
    """What was fed, and what was left out, however much was timed."""
    images: dict[str, Any] | None = measured.notes.get("images")
    if not images:
        return
    yield (
        f"Fed were {images['count']:,} images of about {images['width']} by "
        f"{images['height']} px, {units.size(images['bytes_each'])} each. They had "
        "been read before, so they came from the system's memory and not from a disk."
    )
    if images["skipped"]:
        reasons = [f"{many} {why}" for why, many in images["skipped_because"].items()]
        names = [
            *images["skipped_names"][:3],
            *(["…"] if images["skipped"] > 3 else []),
        ]
        were = "image was" if images["skipped"] == 1 else "images were"
        yield (
            f"{images['skipped']} {were} left out: {', '.join(reasons)} "
            f"({', '.join(names)})."
        )


def _share(compared: Comparison) -> str:
    ends = compared.ratio, compared.low, compared.high
    return units.between(*ends, units.percent)
