"""An input pipeline as a simulation: when each batch is read, decoded and trained on.

It goes from event to event: an element has been read, an element has been decoded, a
step has ended. ``static/simulation.js`` computes the same in a browser, and a test
compares the two; so both have the same structure, and whoever changes one changes both.
"""

import math
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import BadParameterError, need
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding

if TYPE_CHECKING:
    from perfkit.panel.simulator import PipelineSimulator

# Batches that are drawn, and batches in an epoch; the rate is that of the batches after
# those that are drawn, up to the last.
BATCHES, EPOCH, LAST = 12, 4, 36
# A nanosecond: what ends so near to an event ends with it.
_SAME_MS = 1e-6
# From and to, in milliseconds.
Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What is simulated.

    Attributes:
        read_ms: Milliseconds of waiting for the disk or network, for each batch, if its
            elements are read one after another.
        decode_ms: Milliseconds that one core decodes for each batch.
        train_ms: Milliseconds of a training step that has the machine to itself.
        batch: Elements in a batch.
        cores: Cores of the processor.
        parallel: Elements in work at a time, ``num_parallel_calls``.
        prefetch: Batches made ahead; 0 makes a batch when the training asks for it.
        cache: Whether elements cost nothing after the first epoch.
        gpu: Whether the training computes on a GPU; otherwise it uses all cores.
    """

    read_ms: float = 16.0
    decode_ms: float = 64.0
    train_ms: float = 40.0
    batch: int = 32
    cores: float = 4
    parallel: int = 1
    prefetch: int = 0
    cache: bool = False
    gpu: bool = True


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What a simulated pipeline did.

    Attributes:
        read: For each of the first batches, from the begin of its first element to the
            end of its last; None where nothing was read.
        decode: The same of decoding.
        wait: How long the training waited for the batch; None where it did not.
        train: The training step.
        rate: Examples per second of the batches after these.
        wait_share: Which share of that time the training waited.
    """

    read: tuple[Span | None, ...]
    decode: tuple[Span | None, ...]
    wait: tuple[Span | None, ...]
    train: tuple[Span | None, ...]
    rate: float
    wait_share: float


def simulate(pipeline: Pipeline) -> Timeline:
    """Let a pipeline feed a training, from an empty start to a steady state.

    Any number of elements can be read at the same time. Whatever computes gets an equal
    share of the cores: an element that is being decoded uses one, a training without a
    GPU all of them.
    """
    simulation = _Simulation(pipeline)
    simulation.run()
    lanes = simulation.lanes
    drawn = {
        name: tuple(spans.get(number) for number in range(BATCHES))
        for name, spans in lanes.items()
    }
    begin, end = (lanes["train"][number][1] for number in (BATCHES - 1, LAST - 1))
    waits = (lanes["wait"].get(number, (0.0, 0.0)) for number in range(BATCHES, LAST))
    waited = sum(until - since for since, until in waits)
    examples = (LAST - BATCHES) * pipeline.batch
    rate, wait_share = 1000 * examples / (end - begin), waited / (end - begin)
    return Timeline(**drawn, rate=rate, wait_share=wait_share)


@dataclass
class _Simulation:
    """The state between two events; times are in milliseconds."""

    pipeline: Pipeline
    now: float = 0.0
    # Core time that each decoding element has had since the start: all get the same.
    core_time: float = 0.0
    # The batch of each element in work, and when it ends; by core time if it decodes.
    reading: deque[tuple[int, float]] = field(default_factory=deque)
    decoding: deque[tuple[int, float]] = field(default_factory=deque)
    begun: int = 0
    # Elements that are still missing from each batch.
    missing: list[int] = field(default_factory=list)
    # Batches that the training has received, and what its step still has to compute.
    received: int = 0
    step_ms: float | None = None
    idle_since: float = 0.0
    lanes: dict[str, dict[int, Span]] = field(
        default_factory=lambda: {"read": {}, "decode": {}, "wait": {}, "train": {}}
    )

    def run(self) -> None:
        """Go from event to event until the last step has ended."""
        self.missing = [self.pipeline.batch] * (LAST + self.pipeline.prefetch + 1)
        while len(self.lanes["train"]) < LAST or self.step_ms is not None:
            self.begin()
            self.advance()
            self.end()

    def begin(self) -> None:
        """Begin each element and each step that can begin now."""
        while True:
            ahead = max(self.pipeline.prefetch, 1 if self.step_ms is None else 0)
            limit = (self.received + ahead) * self.pipeline.batch
            while self.begun < limit and self.has_room():
                self.begin_element(self.begun // self.pipeline.batch)
                self.begun += 1
            if self.step_ms is not None or self.missing[self.received]:
                return
            self.begin_step()

    def has_room(self) -> bool:
        """Whether one more element may be in work."""
        return len(self.reading) + len(self.decoding) < self.pipeline.parallel

    def begin_element(self, number: int) -> None:
        """Read an element of this batch, or take it from the cache."""
        if self.pipeline.cache and number >= EPOCH:
            self.missing[number] -= 1
            return
        self.open("read", number)
        each = self.pipeline.read_ms / self.pipeline.batch
        self.reading.append((number, self.now + each))

    def begin_step(self) -> None:
        """Give the training its next batch."""
        if self.now - self.idle_since > _SAME_MS:
            self.lanes["wait"][self.received] = (self.idle_since, self.now)
        self.open("train", self.received)
        self.received += 1
        self.step_ms = self.pipeline.train_ms

    def advance(self) -> None:
        """Let time go by until the next event."""
        p, is_training = self.pipeline, self.step_ms is not None
        demand = len(self.decoding) + (p.cores if is_training and not p.gpu else 0)
        share = min(1.0, p.cores / demand) if demand else 1.0
        speed = 1.0 if p.gpu else share
        ends = [math.inf]
        if self.reading:
            ends.append(self.reading[0][1] - self.now)
        if self.decoding:
            ends.append((self.decoding[0][1] - self.core_time) / share)
        if self.step_ms is not None:
            ends.append(self.step_ms / speed)
        spent = max(0.0, min(ends))
        self.now += spent
        self.core_time += spent * share
        if self.step_ms is not None:
            self.step_ms -= spent * speed

    def end(self) -> None:
        """End what has ended by now."""
        each = self.pipeline.decode_ms / self.pipeline.batch
        while self.reading and self.reading[0][1] <= self.now + _SAME_MS:
            number, _ = self.reading.popleft()
            self.close("read", number)
            self.open("decode", number)
            self.decoding.append((number, self.core_time + each))
        while self.decoding and self.decoding[0][1] <= self.core_time + _SAME_MS:
            number, _ = self.decoding.popleft()
            self.close("decode", number)
            self.missing[number] -= 1
        if self.step_ms is not None and self.step_ms <= _SAME_MS:
            self.close("train", self.received - 1)
            self.step_ms, self.idle_since = None, self.now

    def open(self, lane: str, number: int) -> None:
        """Let the bar of a batch begin now, if it has not begun before."""
        self.lanes[lane].setdefault(number, (self.now, self.now))

    def close(self, lane: str, number: int) -> None:
        """Let the bar of a batch reach until now."""
        self.lanes[lane][number] = (self.lanes[lane][number][0], self.now)


# The stages of a data-pipeline run that had the machine to themselves: a step on one
# batch in memory, and all cores decoding. The times of its other variants would not do:
# there, stages take the cores from each other, and the simulation does that itself.
TRAINING_ALONE, DECODING_ALONE = "synthetic", "decode limit"
# What a reader compares the simulation with.
_COMPARED = ("naive map", "parallel map", "prefetch", "cache")
_LARGEST_BATCH, _LONGEST_MS = 1024, 1e6


@dataclass(frozen=True, kw_only=True)
class _Place:
    """The note of a trial on where its first batch lay."""

    gpus: int


def stage_times(finding: Finding) -> Pipeline | None:
    """The stages of a ``data-pipeline`` finding, each as it was measured by itself.

    Nothing is fitted to the rate of any pipeline. Reading is measured by no variant, so
    ``read_ms`` is 0. None where a stage was not measured, or not well enough.
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
    if not max(train_ms, decode_ms) < _LONGEST_MS:
        return None
    places = (note_as(_Place, trial.notes.get("where")) for trial in finding.trials)
    gpu = any(place.gpus > 0 for place in places if place)
    return Pipeline(
        read_ms=0.0,
        decode_ms=decode_ms,
        train_ms=train_ms,
        batch=batch,
        cores=cores,
        gpu=gpu,
    )


def measured_rates(finding: Finding) -> str:
    """The rates of pipelines in a finding, as a reader compares them."""
    rates = (
        f"{timing.variant} {units.significant(timing.rate)}"
        for timing in finding.timings
        if timing.variant in _COMPARED and timing.is_known
    )
    return ", ".join(rates)


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
    from perfkit.panel.simulator import PipelineSimulator

    measured: dict[str, Any] = {}
    if finding is not None and (pipeline := stage_times(finding)):
        measured = {"pipeline": asdict(pipeline), "rates": measured_rates(finding)}
    return PipelineSimulator(start=asdict(Pipeline()), measured=measured)
