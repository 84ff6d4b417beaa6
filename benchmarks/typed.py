"""Is the advice that data-pipeline gives what it measured?

Run from a checkout: ``python benchmarks/typed.py [--budget 180]``. Each essential way
trains beside the line that its verdict tells to type, evaluated as it is printed, among
functions that a reader would write by hand. Every row is the ratio of the two rates in
one interleaved run, with its 95 % interval. It should be 0.95 to 1.05.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfkit.experiments.data_pipeline import DataPipeline, feeding
from perfkit.experiments.data_pipeline.ways import DECODE_LIMIT, GROUPS, SYNTHETIC, WAYS
from perfkit.experiments.session import Session
from perfkit.experiments.shared import decoding
from perfkit.measure.measurement import Arm
from perfkit.measure.plan import Finished

TYPED = ", typed"
NAMES = [name for name in GROUPS["essential"] if name in WAYS]
WANTED = (0.95, 1.05)


def main() -> int:
    """Measure, print the table, and fail where a line gives something else."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=180.0, help="seconds")
    parser.add_argument("--ways", default=",".join(NAMES), help="which of them")
    asked = parser.parse_args()
    measured = run(Typed(arms=asked.ways), asked.budget)
    missed = 0
    print(f"{'way':22} {'as measured':>14} {'typed / measured':>28}")
    for name in [name for name in WAYS if name in asked.ways.split(",")]:
        found = measured.compare(name + TYPED, name)
        missed += not WANTED[0] <= found.ratio <= WANTED[1]
        rate = measured.timing(name).rate
        between = f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"
        print(f"{name:22} {rate:7.0f} images/s {between:>28}")
    return int(missed > 0)


@dataclass(frozen=True, kw_only=True)
class Typed(DataPipeline):
    """The data-pipeline experiment with each way's advice beside it."""

    def variants(self):
        """Add to each way the one that evaluates its advice."""
        both = {}
        for name, arm in super().variants().items():
            if name not in (SYNTHETIC, DECODE_LIMIT):
                both[name] = arm
                work = functools.partial(self.typed, name)
                both[name + TYPED] = Arm(name + TYPED, work, "", name)
        return both

    def typed(self, name):
        """Train on what the advice gives."""
        build = functools.partial(as_typed, WAYS[name].advice)
        way = dataclasses.replace(WAYS[name], build=build)
        return feeding.feed(way, self._task(), training=True)


def as_typed(advice, task):
    """Evaluate the advice where a reader would write it."""
    import tensorflow as tf

    side, tf_side = task.side, [task.side, task.side]

    def decode(path, label):
        return tf.io.decode_jpeg(tf.io.read_file(path), channels=3), label

    def random_of(label):
        # Without a state: a map with one stays serial, which is another way.
        return tf.random.stateless_uniform([4], seed=[label, 1])

    def augmented(image, label):
        return decoding.augment(image, random_of(label), side), label

    def example(path, label):
        if "decode_and_crop_jpeg" not in advice:
            return augmented(*decode(path, label))
        file, drawn = tf.io.read_file(path), random_of(label)
        corner = decoding.corner(tf.io.extract_jpeg_shape(file), drawn, side)
        image = tf.io.decode_and_crop_jpeg(
            file, tf.concat([corner, tf_side], 0), channels=3
        )
        image = decoding.mirror(tf.ensure_shape(image, [*tf_side, 3]), drawn)
        return decoding.scale(image) + decoding.brightness(drawn), label

    files = tf.data.Dataset.from_tensor_slices(
        ([str(path) for path in task.images.paths], list(task.images.labels))
    )
    # What is cached is one pass; it is repeated behind the cache as in every epoch.
    # What stands below a chain is for the function it maps, or for the model.
    dataset, line = files.repeat(), advice.partition("\n# in ")[0]
    if ".cache()" in line:
        dataset, line = files, line.replace(".cache()", ".cache().repeat()")
    names = {"dataset": dataset, "batch": task.batch, "tf": tf}
    own = {"decode": decode, "augment": augmented, "example": example}
    scope = names | own
    exec(line, scope)
    return scope["dataset"]


def run(experiment, budget):
    """Measure all arms interleaved; the finding itself is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(experiment, budget=budget, folder=Path(folder))
        for event in session.events():
            if isinstance(event, Finished):
                return event.measurement
    return None


if __name__ == "__main__":
    sys.exit(main())
