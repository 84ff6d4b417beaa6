"""Does the microbenchmark of a matrix product say what a product timed by hand says?

Run from a checkout: ``python benchmarks/matrix_product.py [--budget 60]``. Four
processes take turns: the microbenchmarks of NumPy and of TensorFlow, and two plain
loops that hold a clock of their own around each product. The engine works out the rates
of the first; the loops' are the mean of their own times. The best of the first has to
be within 5 % of the best of the loops.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from perfkit import units
from perfkit.engine.measurement import Variant
from perfkit.engine.plan import Finished, TrialStarted
from perfkit.engine.steady import steady
from perfkit.engine.tick import READY, Note
from perfkit.questions.microbenchmarks import Microbenchmarks, work
from perfkit.questions.microbenchmarks.work import side
from perfkit.questions.session import Session

WITHIN = 0.05
# Cores that others may keep busy before a ratio is to be doubted.
QUIET = 0.2
NOTE = "seconds of a product"
MICROBENCHMARKS = {"NumPy": work.BASELINE, "TensorFlow": work.TENSORFLOW}
# A product that took so many times the median was stopped in its middle.
STOPPED = 3.0


def main() -> int:
    """Measure, print both rates and their ratio; fail where they are too far off."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=60.0, help="seconds")
    asked = parser.parse_args()
    measured = run(WithLoops(parts="arrays,tensorflow"), asked.budget)
    rows, columns = side(), ("by perfkit", "by hand", "ratio")
    print(f"\nproducts of two matrices of {rows:,} by {rows:,}, float32")
    print(f"{'':12}" + "".join(f"{column:>16}" for column in columns))
    rates = {name: both(measured, name) for name in MICROBENCHMARKS}
    for name, (ours, hand) in rates.items():
        print_row(name, ours, hand)
    best = [max(rates.values(), key=lambda pair: pair[at])[at] for at in (0, 1)]
    print_row("the best", *best)
    print(others(measured, "Nothing can be said of 5 % then"))
    return int(abs(math.log(best[0] / best[1])) > math.log(1 + WITHIN))


def print_row(name, ours, hand):
    """Print a line of the table."""
    texts = (units.rate(ours, "FLOP"), units.rate(hand, "FLOP"))
    print(f"{name:12}" + "".join(f"{t:>16}" for t in (*texts, f"{ours / hand:.3f}")))


def both(measured, name):
    """A library's rate by perfkit and by hand, over the rounds that have both."""
    ours = {t.round: steady(t) for t in completed(measured, MICROBENCHMARKS[name])}
    hand = {t.round: t.notes.get(NOTE) for t in completed(measured, by_hand(name))}
    rounds = [r for r in ours if ours[r] and hand.get(r)]
    flop = work.flop(side())
    return (
        statistics.geometric_mean(ours[r].rate for r in rounds),
        statistics.geometric_mean(flop / hand[r] for r in rounds),
    )


def completed(measured, variant):
    """The trials of a variant that count."""
    return [t for t in measured.trials_of(variant) if t.outcome == "completed"]


def others(measured, doubt):
    """Say how busy other programs were, and what that leaves in doubt."""
    known = [v for v in measured.samples.get("cpu_other", ()) if v is not None]
    busy = f"{statistics.mean(known):.1f}" if known else "an unknown number"
    told = f"\nOther programs kept {busy} of the cores busy."
    if known and statistics.mean(known) <= QUIET:
        return told
    return f"{told} {doubt}: measure again on a quiet machine."


def by_hand(name):
    """What the plain loop of a library is called."""
    return f"{name} by hand"


@dataclass(frozen=True, kw_only=True)
class WithLoops(Microbenchmarks):
    """The two microbenchmarks of a product, and the same by hand."""

    def make_variants(self):
        """Only those that are compared."""
        benchmarks = super().make_variants()
        loops = {"NumPy": numpy_multiplier, "TensorFlow": tensorflow_multiplier}
        variants = [benchmarks[name] for name in MICROBENCHMARKS.values()]
        variants += [
            Variant(by_hand(name), functools.partial(loop, make))
            for name, make in loops.items()
        ]
        return {variant.name: variant for variant in variants}


def loop(make):
    """Multiply for ever; the note is the mean of the times around each product."""
    multiply, spent = make(), []
    multiply()
    yield READY
    while True:
        began = time.perf_counter()
        multiply()
        spent.append(time.perf_counter() - began)
        usual = STOPPED * statistics.median(spent)
        whole = [seconds for seconds in spent if seconds < usual]
        if len(whole) > 1:
            yield Note(NOTE, statistics.mean(whole))
        yield work.flop(side())


def numpy_multiplier():
    """Give a product of NumPy, written down as anybody would."""
    import numpy as np

    one, other = np.random.rand(2, side(), side()).astype("float32")
    return lambda: one @ other


def tensorflow_multiplier():
    """Give a product of TensorFlow, written down as anybody would."""
    import tensorflow as tf

    one, other = tf.random.uniform((2, side(), side()))
    # On a CPU it is done when the call returns; reading it would copy 4 MB as well.
    return lambda: one @ other


def run(experiment, budget):
    """Measure all variants interleaved; the finding itself is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(experiment, budget=budget, folder=Path(folder))
        for event in session.events():
            if isinstance(event, TrialStarted):
                print(f"\r{event.at:4.0f} s of {budget:.0f}", end="", file=sys.stderr)
            if isinstance(event, Finished):
                return event.measurement
    return None


if __name__ == "__main__":
    sys.exit(main())
