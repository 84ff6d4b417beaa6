"""Loads beside a training, and the training beside them."""

import contextlib
import os
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfkit.engine.monitor import OTHERS_VARIABLE
from perfkit.engine.trial import READY, Tick, Yielded, every
from perfkit.errors import RunError
from perfkit.machine.limits import free_bytes
from perfkit.questions.contention import programs
from perfkit.questions.shared import benchmark, tf
from perfkit.questions.shared.benchmark import array_bytes
from perfkit.questions.shared.decoding import step_of
from perfkit.questions.shared.images import jpeg
from perfkit.questions.shared.models import MODELS

# Far longer than a round of trials, and short for whoever would wait for it.
LIMIT_S = 300.0
# What all copies of a load hold together, half in the arrays they copy from, or as
# much of what is free: enough to be seen among what other programs hold.
_HELD_BYTES, _HELD_SHARE = 2 << 30, 4
# Before the verdict is known, this must not tell which load it was.
_ENDED = "the load on this training ended too early, so this run says nothing"


CPU, MEMORY, DISK, GPU = "cpu burners", "memory bandwidth", "disk reader", "gpu product"
PIPELINES = SLEEPING, DECODING = "sleeping pipeline", "decoding pipeline"


@dataclass(frozen=True)
class Load:
    """What slows a training: other processes, or a pipeline of its own.

    Others do the ``work`` of ``programs``, which is "" for a slow pipeline. A verdict
    begins with ``slows``, and says the ``remedy`` where a training shows its signs.
    """

    name: str
    work: str
    action: str
    slows: str
    remedy: str


_PIPELINE = "The pipeline {} to make a batch; no other program works."
LOADS = {
    load.name: load
    for load in (
        Load(
            CPU,
            "cpu",
            "Other processes compute, each on a core.",
            "Programs that take the cores slow",
            "find in `top` which program takes the cores, and end it.",
        ),
        Load(
            MEMORY,
            "memory",
            "Other processes copy arrays that no cache holds.",
            "Programs that copy memory slow",
            "find in `top` which program computes, and run it later.",
        ),
        Load(
            DISK,
            "disk",
            "Another process reads a file from the disk.",
            "Programs that read the disk slow",
            "find in `iotop` which program reads, and run it later.",
        ),
        Load(
            GPU,
            "gpu",
            "Another process multiplies matrices on the GPU.",
            "Programs on the GPU slow",
            "find in `nvidia-smi` which program uses the GPU, and end it or choose "
            "another GPU with `CUDA_VISIBLE_DEVICES`.",
        ),
        Load(
            SLEEPING,
            "",
            _PIPELINE.format("sleeps for twice a step"),
            "A pipeline that waits slows",
            "run `perfkit run data-pipeline`: the pipeline uses few cores, so it waits "
            "for a disk, a network or a lock.",
        ),
        Load(
            DECODING,
            "",
            _PIPELINE.format("decodes on every core"),
            "A pipeline that decodes on all cores slows",
            "run `perfkit run data-pipeline`: the pipeline computes, as decoding does.",
        ),
    )
}


Processes = list[subprocess.Popen[bytes]]


def check(working: Processes) -> None:
    """Raise ``RunError`` if a process has ended, by its limit or because of others."""
    if any(process.poll() is not None for process in working):
        raise RunError(_ENDED)


@contextlib.contextmanager
def at_work(
    load: Load, processes: int = 0, *, limit: float = LIMIT_S
) -> Iterator[Processes]:
    """Let a load work while the block runs, which is given its processes.

    The block begins once it is at work. A load on the CPU or on memory runs in so many
    processes, 0 for one per core. It ends after ``limit`` seconds whatever happens.
    """
    count = (processes or benchmark.granted()) if load.name in (CPU, MEMORY) else 1
    # -P keeps a file of the reader's from standing in for a module. As a file, because
    # `python -m` warns about a module whose package has imported it.
    command = [sys.executable, "-P", programs.__file__, load.work, str(limit)]
    needs = benchmark.files("")[0] if load.name == DISK else ""
    if load.name == MEMORY:
        size = min(_HELD_BYTES, free_bytes() // _HELD_SHARE)
        needs = str(max(array_bytes(), size // 2) // count)
    command += [str(os.getpid()), needs]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {**os.environ, OTHERS_VARIABLE: "1"}
    working = Processes()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen(command, env=environment, **pipes)
            # It waits for the process and closes its pipes, once that was killed.
            stack.enter_context(process)
            stack.callback(process.kill)
            working.append(process)
        for process in working:
            # One byte tells that it has done its first step.
            if not process.stdout or not process.stdout.read(1):
                raise RunError(_ENDED)
        yield working


MODEL = "small-cnn"
# A slow pipeline needs so many times what a step takes to make the next batch.
SLOWER = 2.0
_BATCHES = 8
# Steps that tell how long one takes.
_SEEN = 5


def delay(steps: Sequence[float]) -> float:
    """Seconds that a slow pipeline takes for a batch, from those of a training's steps.

    The first few are made before it is slow; their median passes over the one that
    traces. It is 0 until they are known.
    """
    is_known = len(steps) >= _SEEN
    return SLOWER * statistics.median(steps[:_SEEN]) if is_known else 0.0


def train(batch: int, load: Load | None, processes: int) -> Iterator[Yielded]:
    """Train without an end; what a step waits for its batch is the part ``input``.

    A load that runs in several processes has so many, and 0 is one per core.
    """
    nothing = contextlib.nullcontext(Processes())
    with at_work(load, processes) if load and load.work else nothing as beside:
        examples, seconds = MODELS[MODEL].batch(_BATCHES * batch), list[float]()
        batches = tf.data.Dataset.from_tensor_slices(examples)
        batches = batches.batch(batch).cache().repeat()
        if load and load.name == SLEEPING:
            batches = batches.map(_delayed(seconds))
        elif load and load.name == DECODING:
            at_once = benchmark.granted()
            stage = _decoding(seconds, at_once, jpeg(0, 0))
            batches = batches.map(stage, num_parallel_calls=at_once)
        step = step_of(MODELS[MODEL].build())
        yield READY

        def steps() -> Iterator[Tick]:
            iterator = iter(batches.prefetch(2))
            while True:
                began = time.perf_counter()
                images, labels = next(iterator)
                ready = time.perf_counter()
                step(images, labels)
                seconds.append(time.perf_counter() - ready)
                yield Tick(batch, {"input": ready - began})

        # Every step is a tick of its own, so that the slowest of them can be seen.
        yield from every(steps(), seconds=0.0, sync=lambda: check(beside))


def _delayed(steps: Sequence[float]) -> Callable[[Any, Any], Any]:
    """A stage of a pipeline that takes its time and leaves the batch as it is."""

    def sleep(labels: Any) -> Any:
        time.sleep(delay(steps))
        return labels

    def stage(images: Any, labels: Any) -> tuple[Any, Any]:
        late = tf.numpy_function(sleep, [labels], tf.int32)
        return images, tf.ensure_shape(late, labels.shape)

    return stage


def _decoding(
    steps: Sequence[float], at_once: int, jpeg: bytes
) -> Callable[[Any, Any], Any]:
    """A stage that decodes pictures beside each batch and leaves it as it is.

    So many batches are made at once, and each takes as many times longer: together they
    keep all cores at work for the time that the other stage sleeps.
    """
    # Only the loop knows which of the two it asks for: none is decoded once for all.
    files = tf.constant([jpeg, jpeg])
    # What it takes where nothing comes between: the shortest of a few.
    decode_s = min(timeit.repeat(lambda: tf.io.decode_jpeg(files[0]), number=1))

    def wanted() -> Any:
        late = delay(steps)
        return np.int32(max(1, round(at_once * late / decode_s)) if late else 0)

    def decode(number: Any, sum_: Any) -> tuple[Any, Any]:
        picture = tf.io.decode_jpeg(files[number % 2], channels=3)
        return number + 1, sum_ + tf.cast(picture[0, 0, 0], tf.float32)

    def stage(images: Any, labels: Any) -> tuple[Any, Any]:
        last = tf.ensure_shape(tf.numpy_function(wanted, [], tf.int32), ())
        _, seen = tf.while_loop(lambda number, _: number < last, decode, (0, 0.0))
        # Never below 0, which TensorFlow cannot know: nothing above is left out.
        return images + tf.minimum(seen, 0.0), labels

    return stage
