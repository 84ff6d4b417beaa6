"""How close do the pipelines come to what the cores can decode?

Run from a checkout: ``python benchmarks/decode_limit.py [--budget 120]``. Every row is
a ratio of two rates of one interleaved run, with its 95 % interval: pipelines that feed
nothing, over processes (one per core) that only decode the same files from memory.

A pipeline that decodes only the square it needs does less than the processes that
decode whole images; it is also held against processes that decode only squares.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from dataclasses import dataclass

from matrix_product import others, run

from perfkit import units
from perfkit.engine.measurement import Variant
from perfkit.questions.data_pipeline import DataPipeline
from perfkit.questions.data_pipeline.variants import DECODE_LIMIT
from perfkit.questions.shared import benchmark, decoding
from perfkit.questions.shared.images import recall

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
    limits = (DECODE_LIMIT, SQUARES, SIMPLEJPEG)
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
    """The data-pipeline experiment with two more variants to only decode."""

    def make_variants(self):
        """Add decoding squares, and decoding through another binding."""
        squares = functools.partial(only_a_square, self.image_side)
        return {
            **super().make_variants(),
            SQUARES: Variant(SQUARES, functools.partial(self.limit, squares)),
            SIMPLEJPEG: Variant(
                SIMPLEJPEG, functools.partial(self.limit, with_simplejpeg)
            ),
        }

    def limit(self, decoder):
        """Only decode, with this decoder."""
        images = recall(self.folder, count=self.count, side=self.image_side)
        return decoding.limit(images, decoder)


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
