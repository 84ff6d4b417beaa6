"""How close do the pipelines come to what the cores can decode?

Run from a checkout: ``python benchmarks/decode_limit.py [--budget 120]``. Every row is
a ratio of two rates of one interleaved run, with its 95 % interval: pipelines that feed
nothing, over perfkit's decode limit and over processes (one per core) that only decode
the same files from memory.

A pipeline that decodes only the square it needs does less than the processes that
decode whole images; it is also held against processes that decode only squares.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import mmap
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matrix_product import others, run

from perfkit import units
from perfkit.engine.measurement import Variant
from perfkit.engine.tick import READY, TICK_S, Tick
from perfkit.questions.data_pipeline import DataPipeline
from perfkit.questions.data_pipeline.variants import DECODE_LIMIT
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.images import recall

PROCESSES = "decode limit, processes"
SIMPLEJPEG = "decode limit, simplejpeg"
SQUARES = "decode limit, squares"
# This one decodes only the square that it needs.
CROPPING = "crop while decoding"
PIPELINES = (
    "naive map",
    "prefetch",
    "fixed threads",
    "tfrecord jpeg",
    CROPPING,
)
# What the best pipeline has to reach of what processes that only decode reach.
WANTED = 0.85
FLATTERED = (
    "A pipeline's many threads then get more of a core than a process that only "
    "decodes, so its ratio is too high"
)


def main() -> int:
    """Measure, print the table, and fail where the best pipeline is too slow."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=120.0, help="seconds")
    asked = parser.parse_args()
    names = ",".join((*PIPELINES, DECODE_LIMIT))
    experiment = WithMoreLimits(feeding="alone", variants=names)
    measured = run(experiment, asked.budget)
    print(
        f"{benchmark.granted()} cores, images of about 500 by 375 px, "
        f"{units.size(measured.notes['images']['bytes_each'])} each; rate over that of "
        "each decode limit\n"
    )
    limits = (DECODE_LIMIT, PROCESSES, SQUARES, SIMPLEJPEG)
    print(f"{'':22}{'images/s':>9}  " + "".join(f"{name:>26}" for name in limits))
    for timing in measured.timings:
        compared = [measured.compare(timing.variant, limit) for limit in limits]
        shown = [
            f"{c.ratio:.2f} ({c.low:.2f} to {c.high:.2f})" if c else ""
            for c in compared
        ]
        print(
            f"{timing.variant:22}{timing.rate:9,.0f}  "
            + "".join(f"{text:>26}" for text in shown)
        )
    print(others(measured, FLATTERED))
    return verdict(measured)


def verdict(measured):
    """Say whether the best pipeline comes close enough, whole images and squares."""
    missed = 0
    whole = tuple(name for name in PIPELINES if name != CROPPING)
    for decodes, methods in (("square", (CROPPING,)), ("whole", whole)):
        best = measured.fastest(methods)[0].variant
        ratio = measured.compare(best, DECODE_LIMIT).ratio
        missed += decodes == "square" and ratio < WANTED
        print(f"\nbest that decodes the {decodes}: {best}, {ratio:.2f} of the limit")
    return int(missed)


@dataclass(frozen=True, kw_only=True)
class WithMoreLimits(DataPipeline):
    """The data-pipeline experiment with three more variants to only decode."""

    def make_variants(self):
        """Add decoding in processes: whole, squares, and through another binding."""
        squares = functools.partial(only_a_square, self.image_side)
        return {
            **super().make_variants(),
            PROCESSES: Variant(
                PROCESSES, functools.partial(self.limit, with_tensorflow)
            ),
            SQUARES: Variant(SQUARES, functools.partial(self.limit, squares)),
            SIMPLEJPEG: Variant(
                SIMPLEJPEG, functools.partial(self.limit, with_simplejpeg)
            ),
        }

    def limit(self, decoder):
        """Only decode, with this decoder."""
        images = recall(self.folder, count=self.count, side=self.image_side)
        return limit(images, decoder)


def with_tensorflow():
    """Give ``tf.io.decode_jpeg`` as the pipelines call it."""
    import tensorflow as tf

    # As many processes as cores would fight for them.
    benchmark.without_gpus()
    return lambda file: tf.io.decode_jpeg(file, channels=3)


def limit(images, decoder):
    """Decode in a process for each core and do nothing else; Linux only.

    It has to be called before the process has run anything in TensorFlow. Each process
    makes a decoder of its own.
    """
    files = [Path(path).read_bytes() for path in images.paths]
    workers = benchmark.granted()
    # All processes share this memory, and each writes a number of eight bytes.
    counts = np.frombuffer(mmap.mmap(-1, 8 * workers), np.int64)
    children = [forked(number, files, counts, decoder) for number in range(workers)]
    try:
        while not counts.all():
            time.sleep(0.001)
        total = int(counts.sum())
        yield READY
        while True:
            before = total
            while total == before:
                time.sleep(TICK_S)
                total = int(counts.sum())
            yield Tick(total - before)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def forked(worker, files, counts, decoder):
    """Fork a process that decodes as long as this one lives; give its number."""
    parent = os.getpid()
    if child := os.fork():
        return child
    try:
        decode = decoder()
        for count in itertools.count(1):
            # Each starts elsewhere, so that they do not read the same bytes at once.
            decode(files[(37 * worker + count) % len(files)])
            counts[worker] = count
            if os.getppid() != parent:
                break
    finally:
        os._exit(1)


def only_a_square(side):
    """Give what decodes only a square of each image, in four places by turns."""
    import tensorflow as tf

    # As many processes as cores would fight for them.
    benchmark.without_gpus()
    places = itertools.cycle([(0.1, 0.9), (0.6, 0.3), (0.9, 0.6), (0.4, 0.1)])

    def decode(file):
        height, width, _ = tf.io.extract_jpeg_shape(file).numpy()
        top, left = next(places)
        corner = [int(top * (height - side)), int(left * (width - side))]
        return tf.io.decode_and_crop_jpeg(file, [*corner, side, side], channels=3)

    return decode


def with_simplejpeg():
    """Give libjpeg-turbo's decoder through another binding."""
    import simplejpeg

    return simplejpeg.decode_jpeg


if __name__ == "__main__":
    sys.exit(main())
