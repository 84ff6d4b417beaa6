"""A simulated input pipeline: its settings, and those that a finding has measured.

``static/simulation.js`` computes when each batch is read, decoded and trained on.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import BadParameterError, need
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding

if TYPE_CHECKING:
    from perfkit.panel.browser import PipelineSimulator


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What is simulated.

    Attributes:
        read_ms: Milliseconds of waiting for the disk or network, for each batch, if its
            elements are read one after another.
        decode_ms: Milliseconds that one core decodes for each batch.
        augment_ms: Milliseconds that one core augments each batch.
        train_ms: Milliseconds of a training step that has the machine to itself.
        batch: Elements in a batch.
        cores: Cores of the processor.
        parallel: Elements in work at a time, ``num_parallel_calls``.
        prefetch: Batches made ahead; 0 makes a batch when the training asks for it.
        cache: Whether nothing is read or decoded after the first epoch.
        gpu: Whether the training computes on a GPU; otherwise it uses all cores.
    """

    read_ms: float = 16.0
    decode_ms: float = 64.0
    augment_ms: float = 0.0
    train_ms: float = 40.0
    batch: int = 32
    cores: float = 4
    parallel: int = 1
    prefetch: int = 0
    cache: bool = False
    gpu: bool = True


# The stages of a data-pipeline run that had the machine to themselves: a step on one
# batch in memory, and all cores decoding. The times of its other variants would not do:
# there, stages take the cores from each other, and the simulation does that itself.
TRAINING_ALONE, DECODING_ALONE = "synthetic", "decode limit"
# What a reader compares the simulation with.
_COMPARED = ("naive map", "parallel map", "prefetch", "cache", "crop while decoding")
_LARGEST_BATCH, _LONGEST_MS = 1024, 1e6


def stage_times(finding: Finding) -> Pipeline | None:
    """The stages of a ``data-pipeline`` finding, each as it was measured by itself.

    Nothing is fitted to the rate of any pipeline. All cores decoding say what decoding
    takes; one core alone says what augmenting takes beside it. Reading is measured by
    no variant, so ``read_ms`` is 0. None where decoding or training was not measured,
    or not well enough.
    """
    if finding.experiment != "data-pipeline":
        return None
    timings = {timing.variant: timing for timing in finding.timings}
    training, decoding = map(timings.get, (TRAINING_ALONE, DECODING_ALONE))
    batch = note_as(int, finding.parameters.get("batch")) or 0
    if not (training and decoding and 1 <= batch <= _LARGEST_BATCH):
        return None
    if not (training.is_known and decoding.is_known):
        return None
    cores = max(1, round(finding.machine.cores_granted))
    train_ms = 1000 * batch / training.rate
    # The rate is that of all cores together.
    decode_ms = 1000 * batch * cores / decoding.rate
    augment_ms = decode_ms * share_of_decoding(finding, "augment")
    if not max(train_ms, decode_ms, augment_ms) < _LONGEST_MS:
        return None
    # Where the first batch of each trial lay.
    notes = (trial.notes.get("where") for trial in finding.trials)
    places = (note_as(dict[str, Any], note) or {} for note in notes)
    return Pipeline(
        read_ms=0.0,
        decode_ms=decode_ms,
        augment_ms=augment_ms,
        train_ms=train_ms,
        batch=batch,
        cores=cores,
        gpu=any((note_as(int, place.get("gpus")) or 0) > 0 for place in places),
    )


def share_of_decoding(finding: Finding, stage: str) -> float:
    """A stage's time for an image, over that of decoding it; 0 where not measured."""
    stages = note_as(dict[str, float], finding.notes.get("stages")) or {}
    seconds, decoding_s = stages.get(stage, 0.0), stages.get("decode", 0.0)
    return seconds / decoding_s if min(seconds, decoding_s) > 0 else 0.0


def pipeline_simulator(finding: Finding | None = None) -> "PipelineSimulator":
    """Show an input pipeline with sliders, simulated in the browser.

    As the last line of a cell it draws when the next batches are read, decoded and
    trained on, and the images per second. Move a slider to change them. It is a model
    of a pipeline and measures nothing.

    Args:
        finding: A finding of ``data-pipeline``. If it has the times of the stages, a
            button sets them. None for only the sliders.

    Raises:
        BadParameterError: It is not a finding.
        MissingPartError: anywidget is not installed.
    """
    need("anywidget", "perfkit.pipeline_simulator()", "lab")
    if not (finding is None or isinstance(finding, Finding)):
        raise BadParameterError(
            "pipeline_simulator takes a finding, such as that of "
            f'perfkit.run("data-pipeline"), not {type(finding).__name__}.'
        )
    from perfkit.panel.browser import PipelineSimulator

    measured: dict[str, Any] = {}
    if finding is not None and (pipeline := stage_times(finding)):
        # As a reader compares them.
        rates = ", ".join(
            f"{timing.variant} {units.significant(timing.rate)}"
            for timing in finding.timings
            if timing.variant in _COMPARED and timing.is_known
        )
        square = share_of_decoding(finding, "decode_square")
        measured = {
            "pipeline": asdict(pipeline),
            "square_ms": square * pipeline.decode_ms,
            "rates": rates,
        }
    return PipelineSimulator(start=asdict(Pipeline()), measured=measured)
