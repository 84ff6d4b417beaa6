"""What a run over input pipelines means."""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement
from perfkit.engine.statistics import Comparison, Estimate
from perfkit.engine.trial import Trial
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Finding, Verdict
from perfkit.questions.data_pipeline.variants import DECODE_LIMIT, SYNTHETIC, VARIANTS
from perfkit.questions.data_pipeline.work import BASELINE, Method
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import fact, quoted

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
_READ = (
    "Files that were read before came from the system's memory, not from the disk, if "
    "they fit there."
)
_SHARED_CORES = (
    "The model shares its cores with the pipeline, so a short wait does not mean that "
    f"the input is free. Compare with the rate of {quoted(SYNTHETIC)}."
)
# So many names of left-out images are told.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Fed:
    """The note on the images of a run; see ``Images.describe``."""

    count: int
    found: int
    bytes: int
    bytes_each: int
    width: int
    height: int
    decoded_bytes: int
    skipped: int
    skipped_because: dict[str, int]
    skipped_names: list[str]

    def of_all(self, amount: int) -> float:
        """What an amount of the images that are fed is of all in the folder."""
        return amount * self.found / self.count


@dataclass(frozen=True, kw_only=True)
class Place:
    """The note of a trial on where its first batch lay."""

    batch: str
    gpus: int
    gpu_bytes: int


@dataclass(frozen=True, kw_only=True)
class Result:
    """Which share of a step each variant waits for its batch, where that is known."""

    waits: dict[str, float]


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
    places = _places(t for t in finding.trials if t.variant in looked_at)
    if not places:
        return _not_measured(says, variants)
    on_gpu = any(place.gpu_bytes > 0 or "GPU" in place.batch for place in places)
    size = units.size(max(place.gpu_bytes for place in places))
    devices = " and ".join(sorted({place.batch for place in places}))
    # A machine without a GPU says nothing of what runs on one.
    answer: Answer = "cannot be tested here"
    reason = "The same pipeline ran without a GPU, so it needs none."
    if any(place.gpus for place in places):
        answer = "so here" if on_gpu else "not so"
        reason = f"Making a batch took {size} of the GPU's memory."
    where = f"The pipeline delivered its batches on {devices}."
    compared = [_sentence(c) for c in finding.comparisons if c.variant in names]
    return Claim(says, answer, (where, reason, *(f"Measured: {c}" for c in compared)))


def _places(trials: Iterable[Trial]) -> list[Place]:
    notes = (note_as(Place, trial.notes.get("where")) for trial in trials)
    return [place for place in notes if place]


def _records(finding: Finding) -> Claim:
    says = "TFRecord is faster than a folder of files."
    names = [method.name for method in VARIANTS.values() if method.form]
    compared = [c for c in finding.comparisons if c.variant in names]
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


def judge(measured: Measurement, race: Race, result: Result) -> Verdict:
    """Say what to change in the pipeline, by how much, how sure that is."""
    best, images = race.ranked[0].variant if race.ranked else "", images_fed(measured)
    because, facts = list[str](), list[Fact]()
    for name in dict.fromkeys((BASELINE, best)):
        if name in result.waits:
            label = f"Share of a step that waits for data, {quoted(name)}"
            facts.append(Fact(label, units.percent(result.waits[name])))
    # Where no trial saw a GPU, the processor computed the model.
    if facts and not any(place.gpus for place in _places(measured.trials)):
        because.append(_SHARED_CORES)
    facts += _limits(measured, best)
    for method in timed_methods(measured):
        if reason := method.excluded or too_large(measured, method):
            because.append(f"{quoted(method.name)} does not count: {reason}.")
    if images:
        because.append(_READ)
        facts += _fed(images)
    verdict = race.verdict(
        warnings=tuple(_costs(measured, best, result)),
        because=tuple(because),
        next=_next(measured, race) if race.ranked else "",
    )
    return replace(verdict, facts=tuple(facts))


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
            f"After that the input still costs {units.percent(1 - bare.ratio)}: "
            f"without any, this training reaches {without.in_words('images')}."
        )
    return ""


def _costs(measured: Measurement, best: str, result: Result) -> Iterator[str]:
    """What the winner takes besides: memory, room on the disk, work of the model."""
    images, method = images_fed(measured), VARIANTS.get(best)
    if not images or method is None:
        return
    if method.in_model and best not in result.waits:
        yield (
            f"{quoted(best)} leaves {_LEFT[method.in_model]} to the model, which did "
            "not run here."
        )
    decoded = units.size(images.of_all(images.decoded_bytes))
    if method.keeps:
        yield f"{quoted(best)} keeps {decoded} in memory."
    if method.form == "raw":
        yield (
            f"{quoted(best)} reads {decoded} from its file, where the images "
            f"themselves take {units.size(images.of_all(images.bytes))}."
        )


def _limits(measured: Measurement, best: str) -> Iterator[Fact]:
    """How near to what is possible without any input, and for what decodes."""
    shares = [(best, "", SYNTHETIC)]
    for decodes, words in (("square", "only its square"), ("whole", "whole images")):
        among = [m.name for m in timed_methods(measured) if m.decodes == decodes]
        if among:
            fastest = measured.fastest(tuple(among))[0].variant
            shares.append((fastest, f", which decodes {words}", DECODE_LIMIT))
    for name, words, limit in shares:
        if c := measured.compare(name, limit):
            share = Estimate(value=c.ratio, low=c.low, high=c.high)
            label = f"{quoted(name)}{words}: share of the rate of {quoted(limit)}"
            yield fact(label, share, units.percent)


def images_fed(measured: Measurement) -> Fed | None:
    """What was fed; None where that is not known."""
    return note_as(Fed, measured.notes.get("images"))


def _fed(images: Fed) -> Iterator[Fact]:
    """What was fed, and what was left out."""
    size = f"about {images.width} by {images.height} px"
    each = units.size(images.bytes_each)
    yield Fact("Images fed", f"{images.count:,} of {size}, {each} each")
    if images.skipped:
        counts = (f"{number} {why}" for why, number in images.skipped_because.items())
        more = ["…"] if images.skipped > _NAMED else []
        names = ", ".join([*images.skipped_names[:_NAMED], *more])
        yield Fact("Images left out", f"{', '.join(counts)} ({names})")


def timed_methods(measured: Measurement) -> list[Method]:
    """The variants that feed a model and were timed."""
    return [VARIANTS[t.variant] for t in measured.timings if t.variant in VARIANTS]


def choices_in(measured: Measurement) -> dict[str, Choice]:
    """What may be called the fastest: all but what is excluded, or fits no memory."""
    barred = {
        method.name
        for method in VARIANTS.values()
        if method.excluded or too_large(measured, method)
    }
    return {name: choice for name, choice in CHOICES.items() if name not in barred}


def too_large(measured: Measurement, method: Method) -> str:
    """Say why a cache cannot hold all images there are; "" where it can."""
    images, memory = images_fed(measured), note_as(float, measured.notes.get("memory"))
    if not method.keeps or not images or not memory:
        return ""
    total = images.of_all(images.decoded_bytes)
    if total <= _MEMORY_SHARE * memory:
        return ""
    return (
        f"all {images.found:,} images decoded take {units.size(total)}, and this "
        f"machine has {units.size(memory)}"
    )


def waits_of(measured: Measurement) -> dict[str, float]:
    """The share of each variant's steps that waits for data, by its name."""
    waited, spent = dict[str, float](), dict[str, float]()
    for trial in measured.trials:
        if trial.outcome == "completed" and "input" in trial.parts:
            name = trial.variant
            # The first tick traces the step.
            waited[name] = waited.get(name, 0.0) + sum(trial.parts["input"][1:])
            seconds = sum(ended - began for began, ended, _ in trial.worked[1:])
            spent[name] = spent.get(name, 0.0) + seconds
    return {name: waited[name] / total for name, total in spent.items() if total}
