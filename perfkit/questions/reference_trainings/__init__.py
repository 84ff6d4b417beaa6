"""Where do fixed trainings spend their time on this machine?

The suspect: the same training is fast on another machine; something here is not.
The test: train the same few jobs everywhere and take each step apart by changes: a
batch that is there already (input), several steps in one call (dispatch), a batch that
need not be copied (transfer). What remains is arithmetic, and what the changes leave
open is shown as unexplained.

Network, batch, data, seed and the way of feeding are fixed: what differs between two
machines is then the machine. In full, the batches come from a pipeline and each step is
a call. The resident training trains on one batch that lies where the step computes.
Between its ticks it makes each change for a moment and goes back. That is timed as a
pause, so that none of it is in the rate.
"""

import functools
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Estimate
from perfkit.engine.trial import READY, REFUSED, Note, Pause, Trial, Yielded, every
from perfkit.errors import PerfkitError
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.findings.text import as_sentence
from perfkit.findings.training import (
    UNEXPLAINED,
    Part,
    PartName,
    Training,
    seconds,
    why_missing,
)
from perfkit.questions.base import Experiment
from perfkit.questions.shared import benchmark, cache, images, tf
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.benchmark import calls_of_a_tick
from perfkit.questions.shared.loops import step_of, wait
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import FLOAT32, PRECISIONS
from perfkit.questions.shared.verdicts import fact, failures

Feed = Literal["memory", "JPEG", "disk"]
# Changing anything that shapes the jobs has to change this: only jobs of the same
# recipe are the same job.
RECIPE = 1
SEED = 0
# Photographs that are read again and again; microbenchmarks decode the same.
PHOTOGRAPHS = 32
# Calls of the map at a time, on every machine: at most as many run as there are cores.
CALLS = 32
# An image that is read from the disk as it is: its side in px, and the bytes of each,
# so that a file of theirs holds a whole number of images.
SIDE_ON_DISK, DEPTH_ON_DISK = 256, 4
BYTES_ON_DISK = SIDE_ON_DISK**2 * DEPTH_ON_DISK
_RESIDENT = ", resident"
# Steps on one example in a call, at most, and as a multiple of those on a batch: they
# have to end within a turn.
_MOST_AT_ONCE, _AT_ONCE = 64, 8


@dataclass(frozen=True)
class Reference:
    """One fixed training.

    Its name stands in passports. A call that makes several steps makes ``together``.
    """

    name: str
    model: str
    batch: int
    together: int
    feed: Feed = "memory"
    dtype: str = FLOAT32

    @property
    def variant(self) -> str:
        """The variant that trains it in full."""
        return self.name if self.dtype == FLOAT32 else f"{self.name}, {self.dtype}"

    @property
    def resident(self) -> str:
        """The variant that trains the same network on one batch that is there."""
        precision = "" if self.dtype == FLOAT32 else f", {self.dtype}"
        return f"{self.model}{precision}{_RESIDENT}"

    @property
    def many(self) -> int:
        """Steps on one example in a call that makes several of them."""
        return min(_MOST_AT_ONCE, _AT_ONCE * self.together)

    @property
    def description(self) -> str:
        """It in a line."""
        fed = {
            "memory": "arrays in memory",
            "JPEG": f"{PHOTOGRAPHS} JPEG files of {images.WIDTH} by {images.HEIGHT} px",
            "disk": f"images of {BYTES_ON_DISK:,} bytes in a file that memory forgot",
        }
        return f"{MODELS[self.model].description}, fed from {fed[self.feed]}"

    @property
    def job(self) -> dict[str, str | int]:
        """What has to be equal for two machines to have done the same."""
        quality = f", quality {images.QUALITY}" if self.feed == "JPEG" else ""
        return {
            "recipe": RECIPE,
            "model": self.model,
            "data": f"{self.description}{quality}",
            "feeding": f"{CALLS} calls at a time, 2 batches ahead",
            "optimizer": "Adam",
            "seed": SEED,
        }


_FLOAT32 = (
    Reference("tiny dense", "tiny-dense", 32, 64),
    Reference("small CNN from memory", "small-cnn", 32, 4),
    Reference("small CNN from JPEG", "small-cnn", 32, 4, feed="JPEG"),
    Reference("small CNN from disk", "small-cnn", 32, 4, feed="disk"),
    Reference("wide dense", "wide-dense", 128, 2),
)
_MIXED = tuple(
    Reference("wide dense", "wide-dense", 128, 2, dtype=dtype)
    for dtype in (formats.BFLOAT16, formats.FLOAT16)
)
REFERENCES = (*_FLOAT32, *_MIXED)
# One for each network and precision, however it is fed.
RESIDENTS = {job.resident: job for job in REFERENCES if job.feed == "memory"}


def not_eligible(reference: Reference, hardware: formats.Hardware) -> str:
    """Why a precision is not tried on this machine, as a clause; "" where it is."""
    if reference.dtype == FLOAT32:
        return ""
    expectation = formats.expected(PRECISIONS[reference.dtype], hardware)
    return expectation.because if expectation.expect == "slower" else ""


# What all others of a network go back to: float32, fed from memory.
_BASES = {
    job.model: job.variant
    for job in REFERENCES
    if (job.feed, job.dtype) == ("memory", FLOAT32)
}
_MOST_STEPS = 1_000_000
_NOT_TIMED = "The change was not timed."
# Low end of the interval, the number itself, high end.
Ends = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class ReferenceTrainings(Experiment):
    """Where do fixed trainings spend their time on this machine?"""

    name = "reference-trainings"
    baseline = "small CNN from memory"

    def make_variants(self) -> Mapping[str, Variant]:
        """Each training in full, then each network on a batch that is there."""
        variants = dict[str, Variant]()
        for job in REFERENCES:
            does, base = as_sentence(job.description), _BASES[job.model]
            if job.dtype != FLOAT32:
                does = PRECISIONS[job.dtype].changes
            variants[job.variant] = Variant(
                job.variant,
                functools.partial(fed, job),
                does,
                base if base != job.variant else "",
            )
        for name, job in RESIDENTS.items():
            variants[name] = Variant(
                name,
                functools.partial(resident, job),
                "One batch that stays in memory, instead of a pipeline.",
                job.variant,
            )
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Draw the photographs and write what is read from the disk, once."""
        # Before anything computes: it hides the GPUs, which only holds until then.
        hardware = formats.seen_here()
        no_disk = yield from make()
        refused = dict[str, str]()
        for job in REFERENCES:
            if reason := not_eligible(job, hardware):
                refused |= {job.variant: reason, job.resident: reason}
            elif job.feed == "disk" and no_disk:
                refused[job.variant] = no_disk
        yield Note(REFUSED, refused)

    def result(self, measured: Measurement) -> dict[str, tuple[Training, ...]]:
        """Each training, with its step taken apart."""
        return {"trainings": trainings(measured)}

    def verdict(self, measured: Measurement) -> Verdict:
        """Say of each training how long a step takes, and where that goes."""
        jobs = [t for t in trainings(measured) if t.seconds is not None]
        because = failures(measured)
        if not jobs:
            return Verdict(headline="Nothing could be timed.", because=because)
        facts = list[Fact]()
        for job in jobs:
            facts.append(_row(f"{job.title}: a step", job))
            facts += [_row(f"{job.title}: {part.name}", part) for part in job.parts]
        return Verdict(
            headline=f"{len(jobs)} trainings were timed, and their steps taken apart.",
            facts=tuple(facts),
            because=because,
            next="`perfkit passport` keeps this for comparing machines.",
        )


def _row(label: str, timing: Training | Part) -> Fact:
    if timing.seconds is None or timing.low is None or timing.high is None:
        return Fact(label, "not measured")
    ends = Estimate(value=timing.seconds, low=timing.low, high=timing.high)
    return fact(label, ends, seconds)


def trainings(
    measured: Measurement, refused: Mapping[str, str] | None = None
) -> tuple[Training, ...]:
    """Each reference training, with its step taken apart.

    ``refused`` says why variants were not tried, by name.
    """
    opened = _with_changes(measured)
    return tuple(_training(measured, opened, job, refused or {}) for job in REFERENCES)


def _with_changes(measured: Measurement) -> Measurement:
    """The measurement with each change as a variant of its own.

    What a change took lies in the pauses of the resident trainings, each of which held
    the steps that a note tells.
    """
    variants, trials = dict[str, Variant](), list[Trial]()
    for trial in measured.trials:
        job = RESIDENTS.get(trial.variant)
        if job is None or trial.outcome != "completed":
            continue
        steps = note_as(dict[str, int], trial.notes.get(STEPS)) or {}
        for label, pauses in trial.pauses.items():
            count = steps.get(label, 0)
            if 0 < count < _MOST_STEPS:
                per_step = 1 if label in (ONE, ONE_TOGETHER) else job.batch
                name = _change(job, label)
                variants[name] = Variant(name, ().__iter__)
                trials.append(_as_trial(trial, name, pauses, per_step * count))
    return replace(
        measured,
        variants=(*measured.variants, *variants.values()),
        trials=(*measured.trials, *trials),
    )


def _change(job: Reference, label: str) -> str:
    return f"{job.resident}: {label}"


def _as_trial(
    trial: Trial, name: str, pauses: tuple[float, ...], examples: int
) -> Trial:
    """The pauses of one label as the ticks of a trial."""
    # A rate needs two ticks. Where a trial had time for one change, that counts twice:
    # its doubt is in how trials differ.
    pauses = pauses * 2 if len(pauses) == 1 else pauses
    ends = [math.fsum(pauses[:count]) for count in range(1, len(pauses) + 1)]
    # They were called before the trial was ready; no tick is a first call.
    ticks = ((-1.0, 0), (0.0, examples), *((end, examples) for end in ends))
    nothing: dict[str, Any] = {"turns": (), "pauses": {}, "parts": {}, "notes": {}}
    return replace(trial, variant=name, ticks=ticks, recurring={}, **nothing)


def _training(
    measured: Measurement,
    opened: Measurement,
    job: Reference,
    refused: Mapping[str, str],
) -> Training:
    # What lasts a moment wavers more than a step, and must not widen its interval.
    timing, (weights, device) = measured.timing(job.variant), _trained(measured, job)
    names = ("name", "dtype", "job", "batch")
    about: dict[str, Any] = {name: getattr(job, name) for name in names}
    about |= {"what": job.description, "weights": weights, "device": device}
    if timing is None:
        cause = refused.get(job.variant)
        ended = why_missing(measured.trials_of(job.variant))
        return Training(**about, missing=as_sentence(cause) if cause else ended)
    step = timing.seconds(job.batch)
    parts = tuple(_parts(opened, job, step.value, device))
    about |= {"seconds": step.value, "low": step.low, "high": step.high}
    return Training(**about, trials=timing.trials, parts=parts)


def _trained(measured: Measurement, job: Reference) -> tuple[int | None, str]:
    """Weights and device as a trial noted them; notes may come from a file."""
    for trial in (*measured.trials_of(job.variant), *measured.trials_of(job.resident)):
        note = trial.notes.get(TRAINED)
        if isinstance(note, dict) and isinstance(note.get("weights"), int):
            return note["weights"], str(note.get("device", ""))
    return None, ""


def _parts(
    opened: Measurement, job: Reference, step_s: float, device: str
) -> Iterator[Part]:
    """Where a step of so many seconds goes."""
    labels = (COPIED, ONE, ONE_TOGETHER, TOGETHER)
    copied, alone, many, together = (_change(job, label) for label in labels)
    on_gpu = opened.timing(copied) is not None
    fed = _saved(opened, job.variant, copied if on_gpu else job.resident, job.batch)
    # On one example it is most of a step; a call is left for every so many steps.
    call = _saved(opened, alone, many, job.many / (job.many - 1))
    compute = _step_s(opened, job.variant, together, job.batch) if call else None
    if call and compute:
        low, middle, high = (end - call[1] / job.together for end in compute)
        compute = low, middle, high
    transfer: Ends | None = (0.0, 0.0, 0.0)
    way = "0: the processor reads the batch where it is."
    if on_gpu or device.startswith("GPU"):
        transfer = _saved(opened, copied, job.resident, job.batch)
        way = "A batch in the computer's memory swapped for one on the GPU."
    yield _part("input", fed, "The pipeline swapped for a batch that is there already.")
    change = f"A call for each step swapped for one of {job.many} steps, on one example"
    yield _part("dispatch", call, f"{change}.")
    yield _part("transfer", transfer, way)
    change = f"{job.together} steps in one call on a batch that is there"
    yield _part("compute", compute, f"{change}, less what the call costs.")
    remainder, saved = None, _saved(opened, job.resident, together, job.batch)
    if saved and fed and call and transfer and compute:
        gap = step_s - math.fsum(part[1] for part in (fed, call, transfer, compute))
        half = math.hypot(saved[2] - saved[0], call[2] - call[0]) / 2
        remainder = gap - half, gap, gap + half
    way = "The step less the other parts; below 0 if they overlap."
    yield _part(UNEXPLAINED, remainder, way)


def _part(name: PartName, ends: Ends | None, way: str) -> Part:
    if ends is None:
        lack = "A part is not known." if name == UNEXPLAINED else _NOT_TIMED
        return Part(name=name, how=lack)
    low, value, high = ends
    return Part(name=name, seconds=value, low=low, high=high, how=way)


def _step_s(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the fast variant, at the usual length of the slow one's.

    They come from the rounds that hold both.
    """
    timing, ratio = opened.timing(slow), opened.compare(fast, slow)
    if timing is None or ratio is None:
        return None
    step_s = examples / timing.rate
    return step_s / ratio.high, step_s / ratio.ratio, step_s / ratio.low


def _saved(opened: Measurement, slow: str, fast: str, examples: float) -> Ends | None:
    """Seconds of a step of the slow variant that are gone in the fast one."""
    timing, ends = opened.timing(slow), _step_s(opened, slow, fast, examples)
    if timing is None or ends is None:
        return None
    low, middle, high = (examples / timing.rate - end for end in reversed(ends))
    return low, middle, high


Step = Callable[[Any, Any], "tf.Tensor"]
Steps = Callable[[Any, Any, Any], "tf.Tensor"]

# What is swapped for a moment, by the label of its pauses.
TOGETHER = "several steps in a call"
ONE, ONE_TOGETHER = "one example", "one example, several steps in a call"
COPIED = "a batch copied to the GPU"
# Notes: the steps of one pause by its label, and what was trained.
STEPS, TRAINED = "steps", "trained"
# Examples that are fed from memory, in batches.
_BATCHES = 8
# Ticks of the training itself between two rounds of changes.
_TICKS = 2
_SIDE = 32
# Bytes that are asked of the disk at a time, and labels to learn.
_AT_A_TIME, _LABELS = 1 << 20, 10


def make() -> Generator[Note, None, str]:
    """Draw the photographs and write the file for the disk, on first use.

    It gives why the disk cannot be tried, as a clause; "" where it can.
    """
    folder = yield from images.image_folder(PHOTOGRAPHS)
    yield from images.look_at(folder, count=PHOTOGRAPHS, side=_SIDE)
    try:
        paths = yield from benchmark.make("")
    except PerfkitError as error:
        # The other trainings need no disk.
        return str(error).rstrip(".")
    # What memory keeps would show nothing of the disk.
    return "" if benchmark.forgets(paths) else "files stay in memory here"


def fed(reference: Reference) -> Iterator[Yielded]:
    """Train on batches from a pipeline, a call for each step."""
    step, _, trained = build(reference)
    # Two batches ahead, and nothing tuned to the machine.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = _examples(reference).batch(reference.batch, drop_remainder=True)
    batches = batches.prefetch(2).with_options(options)
    yield trained
    paths = benchmark.files("") if reference.feed == "disk" else ()
    benchmark.forget(paths)
    yield READY

    def steps() -> Iterator[int | Pause]:
        # All but the disk's feed have no end.
        while True:
            for examples, labels in batches:
                step(examples, labels)
                yield reference.batch
            yield benchmark.forget(paths)

    yield from every(steps(), sync=wait)


def resident(reference: Reference) -> Iterator[Yielded]:
    """Train on one batch that is in memory, and change other things in between."""
    step, several_steps, trained = build(reference)
    batch = placed(*MODELS[reference.model].batch(reference.batch, SEED))
    changes = {
        label: (call, calls_of_a_tick(call, wait), steps)
        for label, call, steps in _changes(reference, step, several_steps, batch)
    }
    count = calls_of_a_tick(lambda: step(*batch), wait)
    yield trained
    yield Note(STEPS, {n: calls * steps for n, (_, calls, steps) in changes.items()})
    # What a first call takes is known of the full training.
    yield READY
    while True:
        for _ in range(_TICKS):
            for _ in range(count):
                step(*batch)
            wait()
            yield count * reference.batch
        for label, (call, calls, _) in changes.items():
            for _ in range(calls):
                call()
            wait()
            yield Pause(label)


def build(reference: Reference) -> tuple[Step, Steps, Note]:
    """A step on a batch, several of them in one call, and the note on the training."""
    model = MODELS[reference.model]
    network, optimizer = PRECISIONS[reference.dtype].build(model, SEED)
    plain = step_of(network, optimizer)
    batch = (
        tf.TensorSpec([None, *model.shape], tf.float32),
        tf.TensorSpec([None], tf.int32),
    )
    specs = (tf.TensorSpec([], tf.int32), *batch)

    def steps(count: tf.Tensor, examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        def once(number: tf.Tensor) -> tf.Tensor:
            with tf.control_dependencies([plain(examples, labels)]):
                return number + 1

        # Side by side, steps would not wait for each other's weights.
        return tf.while_loop(
            lambda number: number < count, once, [0], parallel_iterations=1
        )[0]

    device = "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"
    trained = {"weights": int(network.count_params()), "device": device}
    return (
        tf.function(plain, input_signature=batch, autograph=False),
        tf.function(steps, input_signature=specs, autograph=False),
        Note(TRAINED, trained),
    )


def _changes(
    reference: Reference, step: Step, steps: Steps, batch: tuple[Any, Any]
) -> Iterator[tuple[str, Callable[[], object], int]]:
    """Each change: its label, what makes it, and the steps in that."""
    together, many = reference.together, reference.many
    example = tuple(part[:1] for part in batch)
    yield TOGETHER, lambda: steps(together, *batch), together
    yield ONE, lambda: step(*example), 1
    yield ONE_TOGETHER, lambda: steps(many, *example), many
    if tf.config.list_logical_devices("GPU"):
        with tf.device("CPU:0"):
            there = tuple(tf.constant(part.numpy()) for part in batch)
        yield COPIED, lambda: step(*there), 1


def placed(examples: Any, answers: Any) -> "tuple[tf.Tensor, tf.Tensor]":
    """A batch where the step computes."""
    return tf.constant(examples), tf.constant(answers)


def _examples(reference: Reference) -> "tf.data.Dataset":
    """The examples of a training, one by one, as its feed brings them."""
    if reference.feed == "memory":
        arrays = MODELS[reference.model].batch(_BATCHES * reference.batch, SEED)
        return tf.data.Dataset.from_tensor_slices(arrays).repeat()
    as_it_is = tf.autograph.experimental.do_not_convert
    if reference.feed == "disk":
        sizes = {"record_bytes": BYTES_ON_DISK, "buffer_size": _AT_A_TIME}
        records = tf.data.FixedLengthRecordDataset(list(benchmark.files("")), **sizes)
        return records.map(as_it_is(_image_of))
    folder = cache.folder() / images.folder_name(PHOTOGRAPHS)
    photos = images.recall(folder, count=PHOTOGRAPHS, side=_SIDE)
    pairs = list(photos.paths), list(photos.labels)
    files = tf.data.Dataset.from_tensor_slices(pairs).repeat()
    return files.map(as_it_is(_decode), num_parallel_calls=CALLS)


def _decode(path: Any, label: Any) -> Any:
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    small = tf.image.resize(image, [_SIDE, _SIDE]) / 255.0
    return tf.ensure_shape(small, [_SIDE, _SIDE, 3]), tf.cast(label, tf.int32)


def _image_of(record: Any) -> Any:
    """An image as it is, and its label; every eighth pixel is enough to train."""
    each = SIDE_ON_DISK // _SIDE
    shape = [SIDE_ON_DISK, SIDE_ON_DISK, DEPTH_ON_DISK]
    pixels = tf.reshape(tf.io.decode_raw(record, tf.uint8), shape)
    image = pixels[::each, ::each, :3]
    label = tf.cast(image[0, 0, 0], tf.int32) % _LABELS
    return tf.cast(image, tf.float32) / 255.0, label
