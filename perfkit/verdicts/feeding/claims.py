"""Claims about feeding images that are in circulation, and what a run says to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding
    from perfkit.measure.statistics import Comparison

Answer = Literal["not so", "so here", "not so here", "mixed", "not measured"]


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
    gain = _compared(finding, ("parallel map", "prefetch", "rewritten"))
    return Claim(
        says,
        "not so" if not any(_on_gpu(place) for place in places) else "so here",
        (*_where(places), *(f"What it gains, it gains on the CPU: {c}." for c in gain)),
    )


def _vectorised_on_gpu(finding: Finding) -> Claim:
    says = "Vectorised preprocessing uses the GPU."
    gain = list(_compared(finding, ("numpy by element", "batch first")))
    places = list(_places(finding, ("numpy", "batch first")))
    if not gain or not places:
        return _not_measured(says, "python,augmentation")
    return Claim(
        says,
        "not so" if not any(_on_gpu(place) for place in places) else "so here",
        (*_where(places), *(f"Measured: {compared}." for compared in gain)),
    )


def _records(finding: Finding) -> Claim:
    says = "TFRecord is faster than a folder of files."
    names = ("tfrecord jpeg", "tfrecord raw", "tfrecord shards")
    found = [c for c in finding.comparisons if c.variant in names]
    if not found:
        return _not_measured(says, "formats")
    verdicts = {c.verdict for c in found if c.baseline == "prefetch"}
    answer: Answer = "mixed"
    if "faster" not in verdicts:
        answer = "not so here"
    elif verdicts == {"faster"}:
        answer = "so here"
    return Claim(says, answer, tuple(f"{_sentence(c)}." for c in found))


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


def _where(places: list[dict[str, Any]]) -> Iterator[str]:
    devices = sorted({place["batch"] for place in places})
    yield f"The batches came out of the pipeline on {' and '.join(devices)}."
    if max(place["gpus"] for place in places) == 0:
        yield "This machine has no GPU, and the same pipeline ran."
    else:
        taken = max(place["gpu_bytes"] for place in places)
        yield f"Making a batch took {units.size(taken)} of the GPU's memory."


def _compared(finding: Finding, variants: tuple[str, ...]) -> Iterator[str]:
    for comparison in finding.comparisons:
        if comparison.variant in variants:
            yield _sentence(comparison)


def _sentence(c: Comparison) -> str:
    return (
        f'"{c.variant}" runs at {units.ratio(c.ratio)} the rate of "{c.baseline}" '
        f"(95 % interval {c.low:.2f} to {c.high:.2f}; {c.verdict})"
    )
