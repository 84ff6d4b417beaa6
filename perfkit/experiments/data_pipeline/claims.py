"""Claims about feeding images that are in circulation, and what a run says to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit import units
from perfkit.experiments.shared.words import interval, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding
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
