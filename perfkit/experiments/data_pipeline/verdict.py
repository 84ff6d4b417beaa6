"""What a run over input pipelines means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit import units
from perfkit.experiments.data_pipeline import numbers
from perfkit.experiments.data_pipeline.ways import (
    BASELINE,
    DECODE_LIMIT,
    SYNTHETIC,
    WAYS,
)
from perfkit.experiments.shared.race import Choice, Race
from perfkit.experiments.shared.words import interval, quoted, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding, Verdict
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison


Answer = Literal[
    "not so",
    "so here",
    "not so here",
    "mixed",
    "too noisy to say",
    "not measured",
    "cannot be tested here",
]


@dataclass(frozen=True)
class Claim:
    """One claim and its measured answer.

    Attributes:
        says: The claim, as it is usually put.
        answer: Whether it holds: at all, or on this machine in this run.
        because: What was measured, a sentence each; where nothing was, what to run.
    """

    says: str
    answer: Answer
    because: tuple[str, ...]


def claims(finding: Finding) -> tuple[Claim, ...]:
    """Hold the claims in circulation against a finding of the data-pipeline experiment.

    The arms that they need are in the groups ``augmentation``, ``python`` and
    ``formats``; a claim whose arms were not run is "not measured".
    """
    return (_map_on_gpu(finding), _vectorised_on_gpu(finding), _records(finding))


def _map_on_gpu(finding: Finding) -> Claim:
    says = "Augmentation in map runs on the GPU."
    places = list(_places(finding))
    if not places:
        return _not_measured(says, "essential")
    gain = _compared(finding, ("parallel map", "prefetch"))
    return Claim(
        says,
        _about_gpu(places),
        (*_where(places), *(f"Measured: {c}." for c in gain)),
    )


def _vectorised_on_gpu(finding: Finding) -> Claim:
    says = "Vectorised preprocessing uses the GPU."
    gain = list(_compared(finding, ("numpy by element", "batch first")))
    places = list(_places(finding, ("numpy", "batch first")))
    if not gain or not places:
        return _not_measured(says, "python,augmentation")
    return Claim(
        says,
        _about_gpu(places),
        (*_where(places), *(f"Measured: {compared}." for compared in gain)),
    )


def _records(finding: Finding) -> Claim:
    says = "TFRecord is faster than a folder of files."
    names = ("tfrecord jpeg", "tfrecord raw", "tfrecord shards")
    found = [c for c in finding.comparisons if c.variant in names]
    verdicts = {c.verdict for c in found if c.baseline == "prefetch"}
    if not verdicts:
        return _not_measured(says, "formats")
    answer: Answer = "not so here"
    if "faster" in verdicts:
        answer = "so here" if verdicts == {"faster"} else "mixed"
    elif "too noisy to say" in verdicts:
        answer = "too noisy to say"
    read = "Both had been read before, so they came from memory and not from a disk."
    return Claim(says, answer, (*(f"{_sentence(c)}." for c in found), read))


def _not_measured(says: str, arms: str) -> Claim:
    return Claim(says, "not measured", (f"Run the experiment with arms {arms!r}.",))


def _places(
    finding: Finding, variants: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    for trial in finding.trials:
        if "where" in trial.notes and (not variants or trial.variant in variants):
            yield trial.notes["where"]


def _on_gpu(place: dict[str, Any]) -> bool:
    return place["gpu_bytes"] > 0 or "GPU" in place["batch"]


def _about_gpu(places: list[dict[str, Any]]) -> Answer:
    """A machine without a GPU says nothing of what runs on one."""
    if not any(place["gpus"] for place in places):
        return "cannot be tested here"
    return "so here" if any(_on_gpu(place) for place in places) else "not so"


def _where(places: list[dict[str, Any]]) -> Iterator[str]:
    devices = sorted({place["batch"] for place in places})
    yield f"The batches came out of the pipeline on {' and '.join(devices)}."
    if max(place["gpus"] for place in places) == 0:
        yield "No GPU was there, and the same pipeline ran: it needs none."
    else:
        taken = max(place["gpu_bytes"] for place in places)
        yield f"Making a batch took {units.size(taken)} of the GPU's memory."


def _compared(finding: Finding, variants: tuple[str, ...]) -> Iterator[str]:
    for comparison in finding.comparisons:
        if comparison.variant in variants:
            yield _sentence(comparison)


def _sentence(c: Comparison) -> str:
    return (
        f'"{c.variant}" runs at {ratio(c)} the rate of "{c.baseline}" '
        f"({interval(c)}; {c.judgement})"
    )


# An end of epoch that takes less is not worth a sentence.
_EPOCH_END_S = 0.05
_LEFT = {"bytes": "scaling and brightening", "layers": "mirroring and brightening"}


def because(measured: Measurement, best: str) -> tuple[str, ...]:
    """The facts that a verdict naming ``best`` rests on."""
    return (
        *_rewrites(measured),
        *_waits(measured, best),
        *_ceiling(measured, best),
        *_limit(measured),
        *_busiest_stage(measured, best),
        *_epoch_ends(measured, best),
        *_out_of_contest(measured),
        *images_fed(measured),
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


def judge(measured: Measurement, *, alone: bool) -> Verdict:
    """Say what to change in the pipeline, by how much, how sure that is.

    Args:
        measured: The run.
        alone: Whether none of its arms trained on the batches.
    """
    choices = {
        name: Choice(WAYS[name].do, WAYS[name].advice)
        for name in numbers.contenders(measured)
    }
    what = "The pipeline" if alone else "This training"
    race = Race(measured, choices, "images", what, BASELINE)
    if not race.ranked:
        return race.verdict(because=tuple(images_fed(measured)))
    best = race.ranked[0].variant
    return race.verdict(
        warnings=tuple(_costs(measured, best)),
        because=because(measured, best),
        next=_next(measured, race),
    )


def _next(measured: Measurement, race: Race) -> str:
    if race.won:
        return _left_in_input(measured, race.winner)
    bare = numbers.without_input(measured, BASELINE)
    if bare is not None and bare.verdict == "no difference shown":
        return (
            "Without any input this training gains less than 10 %, if anything. Look "
            "at the step itself: its precision, its batch size, its compiler."
        )
    return ""


def _left_in_input(measured: Measurement, best: str) -> str:
    """What the input still costs once the line is changed; "" where it is unknown."""
    bare = numbers.without_input(measured, best)
    if bare is not None and bare.verdict == "no difference shown":
        return (
            "After that the input costs less than 10 %, if anything: what takes the "
            "time is the step itself."
        )
    if bare is not None and bare.verdict == "slower":
        return (
            f"After that the input still costs {units.percent(1 - bare.ratio)} of the "
            "rate that this training reaches without any."
        )
    return ""
