"""What a run over input pipelines means."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement
from perfkit.engine.statistics import Comparison
from perfkit.findings.record import Finding, Verdict
from perfkit.questions.data_pipeline.variants import DECODE_LIMIT, SYNTHETIC, VARIANTS
from perfkit.questions.data_pipeline.work import BASELINE, Method
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import quoted

Answer = Literal[
    "not so",
    "so here",
    "not so here",
    "mixed",
    "too noisy to say",
    "not measured",
    "cannot be tested here",
]
CHOICES = {
    method.name: Choice(method.do, functools.partial(getattr, method, "advice"))
    for method in VARIANTS.values()
}
CHOICES[OWN] = Choice("Use your own pipeline.", "dataset = yours(...)")
# A cache may fill this share of the machine's memory.
_MEMORY_SHARE = 0.5
_LEFT = {"bytes": "scaling and brightening", "layers": "mirroring and brightening"}


@dataclass(frozen=True)
class Claim:
    """One claim as it is usually put, and whether it holds here.

    What was measured is said in a sentence each; where nothing was, what to run.
    """

    says: str
    answer: Answer
    because: tuple[str, ...]


def claims(finding: Finding) -> tuple[Claim, ...]:
    """Hold the claims in circulation against a finding of the data-pipeline experiment.

    The variants that they need are in the groups ``essential``, ``augmentation``,
    ``python`` and ``formats``; a claim whose variants were not run is "not measured".
    """
    in_map = "Augmentation in map runs on the GPU."
    vectorised = "Vectorised preprocessing uses the GPU."
    variants = tuple(trial.variant for trial in finding.trials)
    mapped, arrays = ("parallel map", "prefetch"), ("numpy", "batch first")
    loops = ("numpy by element", "batch first")
    return (
        _on_gpu(finding, in_map, variants, mapped, "essential"),
        _on_gpu(finding, vectorised, arrays, loops, "python,augmentation"),
        _records(finding),
    )


def _on_gpu(
    finding: Finding,
    says: str,
    looked_at: tuple[str, ...],
    names: tuple[str, ...],
    variants: str,
) -> Claim:
    """Answer by where the batches of some variants lay; tell how fast others are."""
    places = [
        trial.notes["where"]
        for trial in finding.trials
        if trial.variant in looked_at and "where" in trial.notes
    ]
    if not places:
        return _not_measured(says, variants)
    gpus = any(place["gpus"] for place in places)
    on_gpu = any(place["gpu_bytes"] > 0 or "GPU" in place["batch"] for place in places)
    size = units.size(max(place["gpu_bytes"] for place in places))
    devices = " and ".join(sorted({place["batch"] for place in places}))
    # A machine without a GPU says nothing of what runs on one.
    answer: Answer = "cannot be tested here"
    reason = "No GPU was there, and the same pipeline ran: it needs none."
    if gpus:
        answer = "so here" if on_gpu else "not so"
        reason = f"Making a batch took {size} of the GPU's memory."
    where = f"The batches came out of the pipeline on {devices}."
    compared = [_sentence(c) for c in finding.comparisons if c.variant in names]
    return Claim(says, answer, (where, reason, *(f"Measured: {c}" for c in compared)))


_READ = (
    "What had been read before came from the system's memory and not from a disk, as "
    "far as it fits there."
)


def _records(finding: Finding) -> Claim:
    says = "TFRecord is faster than a folder of files."
    compared = [c for c in finding.comparisons if c.variant.startswith("tfrecord ")]
    verdicts = {c.verdict for c in compared if c.baseline == "prefetch"}
    if not verdicts:
        return _not_measured(says, "formats")
    answer: Answer = "so here" if verdicts == {"faster"} else "not so here"
    if "faster" in verdicts and verdicts & {"slower", "no difference shown"}:
        answer = "mixed"
    elif "too noisy to say" in verdicts:
        answer = "too noisy to say"
    return Claim(says, answer, (*map(_sentence, compared), _READ))


def _not_measured(says: str, variants: str) -> Claim:
    return Claim(says, "not measured", (f"Run it with variants={variants!r}.",))


def _sentence(c: Comparison) -> str:
    runs = f'"{c.variant}" runs at {c.interval} the rate of "{c.baseline}"'
    return f"{runs} ({c.judgement})."


def judge(measured: Measurement, race: Race) -> Verdict:
    """Say what to change in the pipeline, by how much, how sure that is."""
    if not race.ranked:
        return race.verdict(because=tuple(_images_fed(measured)))
    best = race.ranked[0].variant
    return race.verdict(
        warnings=tuple(_costs(measured, best)),
        because=(
            *_waits(measured, best),
            *_limits(measured, best),
            *_out_of_contest(measured),
            *_images_fed(measured),
        ),
        next=_next(measured, race),
    )


def _next(measured: Measurement, race: Race) -> str:
    """What the input still costs once the code is changed; "" where it is unknown."""
    # This, and not the wait, says what the input costs: where the processor computes
    # the model too, decoding takes its cores while hardly a step waits.
    bare = measured.compare(race.winner or BASELINE, SYNTHETIC)
    if bare is None:
        return ""
    if bare.verdict == "no difference shown":
        after = "After that the input" if race.won else "The input"
        return (
            f"{after} costs less than 10 %, if anything. Look at the step itself: its "
            "precision, its batch size, its compiler."
        )
    without = measured.timing(bare.baseline)
    if bare.verdict == "slower" and bare.ends and race.won and without:
        return (
            f"After that the input still costs {units.percent(1 - bare.ratio)}: this "
            f"training reaches {without.in_words('images')} without any."
        )
    return ""


def _costs(measured: Measurement, best: str) -> Iterator[str]:
    """What the winner takes besides: memory, room on the disk, work of the model."""
    images = measured.notes.get("images")
    method = VARIANTS.get(best)
    if not images or method is None:
        return
    if method.in_model and waiting(measured, best) is None:
        yield (
            f"{quoted(best)} leaves {_LEFT[method.in_model]} to the model, which was "
            "not run here and would have to do it."
        )
    # What was fed may be a part of the reader's own pictures.
    scale = images["found"] / images["count"]
    decoded, encoded = (
        units.size(scale * images[name]) for name in ("decoded_bytes", "bytes")
    )
    if method.keeps:
        yield f"{quoted(best)} keeps {decoded} in memory."
    if method.form == "raw":
        yield (
            f"{quoted(best)} reads {decoded} from its file, where the images "
            f"themselves take {encoded}."
        )


def _waits(measured: Measurement, best: str) -> Iterator[str]:
    waits = [
        f"{units.percent(share)} with {quoted(name)}"
        for name in dict.fromkeys([BASELINE, best])
        if (share := waiting(measured, name)) is not None
    ]
    if waits:
        yield f"Of a training step, the wait for data is {' and '.join(waits)}."
    places = [trial.notes.get("where") for trial in measured.trials]
    # Where no trial saw a GPU, the processor computed the model.
    if waits and not any(place["gpus"] for place in places if place):
        yield (
            "The model computes on the same cores as the pipeline, so a short wait is "
            f"no sign that the input is free; the rate of {quoted(SYNTHETIC)} would be "
            "one."
        )


def _limits(measured: Measurement, best: str) -> Iterator[str]:
    """What is possible without any input, and for what decodes."""
    ceiling = measured.timing(SYNTHETIC)
    compared = measured.compare(best, SYNTHETIC)
    if ceiling and compared:
        yield (
            "The same training on one batch that stays in memory reaches "
            f"{ceiling.in_words('images')}; {quoted(best)} reaches "
            f"{_share(compared)} of that."
        )
    limit = measured.timing(DECODE_LIMIT)
    if limit:
        rate = limit.in_words("images")
        shares = [
            f"; {quoted(name)}, which decodes {part}, {_share(compared)} of that"
            for part, name in best_that_decode(measured).items()
            if (compared := measured.compare(name, DECODE_LIMIT))
        ]
        yield (
            f"Cores that decode whole images and do nothing else reach {rate}"
            f"{''.join(shares)}."
        )


def _out_of_contest(measured: Measurement) -> Iterator[str]:
    for method in timed_methods(measured):
        reason = method.excluded or too_large(measured, method)
        timing = measured.timing(method.name)
        if reason and timing:
            rate = timing.in_words("images")
            yield f"{quoted(method.name)} ({rate}) does not count: {reason}."


def _images_fed(measured: Measurement) -> Iterator[str]:
    """What was fed, and what was left out, however much was timed."""
    images: dict[str, Any] | None = measured.notes.get("images")
    if not images:
        return
    yield (
        f"Fed were {images['count']:,} images of about {images['width']} by "
        f"{images['height']} px, {units.size(images['bytes_each'])} each. {_READ}"
    )
    if many := images["skipped"]:
        reasons = [
            f"{number} {reason}" for reason, number in images["skipped_because"].items()
        ]
        names = [*images["skipped_names"][:3], *(["…"] if many > 3 else [])]
        were = "image was" if many == 1 else "images were"
        yield f"{many} {were} left out: {', '.join(reasons)} ({', '.join(names)})."


def _share(compared: Comparison) -> str:
    ends = compared.ratio, compared.low, compared.high
    return units.between(*ends, units.percent)


def timed_methods(measured: Measurement) -> list[Method]:
    """The variants that feed a model and were timed."""
    return [VARIANTS[t.variant] for t in measured.timings if t.variant in VARIANTS]


def contenders(measured: Measurement) -> tuple[str, ...]:
    """The variants that were timed and may be called the fastest."""
    yours = (OWN,) if measured.timing(OWN) else ()
    return yours + tuple(
        method.name
        for method in timed_methods(measured)
        if not method.excluded and not too_large(measured, method)
    )


def too_large(measured: Measurement, method: Method) -> str:
    """Say why a cache cannot hold all images there are; "" where it can."""
    images, memory = measured.notes.get("images"), measured.notes.get("memory")
    if not method.keeps or not images or not memory:
        return ""
    total = images["decoded_bytes"] * images["found"] / images["count"]
    if total <= _MEMORY_SHARE * memory:
        return ""
    return (
        f"all {images['found']:,} images decoded take {units.size(total)}, and this "
        f"machine has {units.size(memory)}"
    )


def waiting(measured: Measurement, variant: str) -> float | None:
    """Which share of its steps' time a variant waits for data; None where unknown."""
    waited = spent = 0.0
    for trial in measured.trials_of(variant):
        if trial.outcome == "completed" and "input" in trial.parts:
            # The first tick traces the step.
            waited += sum(trial.parts["input"][1:])
            spent += sum(ended - began for began, ended, _ in trial.worked[1:])
    return waited / spent if spent else None


def best_that_decode(measured: Measurement) -> dict[str, str]:
    """The fastest variant that decodes whole images, and the one that does not."""
    methods, fastest = timed_methods(measured), dict[str, str]()
    parts = {"square": "only the square it needs", "whole": "them all"}
    for decodes, part in parts.items():
        if among := tuple(m.name for m in methods if m.decodes == decodes):
            fastest[part] = measured.fastest(among)[0].variant
    return fastest
