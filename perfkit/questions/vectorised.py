"""What does a loop cost, and is "vectorised" one thing?

The suspect: a Python loop pays for every row, or even for every number.
The test: sum the squares of the rows of one table in several ways and compare rows per
second. NumPy's variants run on the CPU, however they are written.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.trial import Yielded
from perfkit.questions.base import Experiment, Range, check_fits
from perfkit.questions.shared import tf
from perfkit.questions.shared.benchmark import repeated, without_gpus
from perfkit.questions.shared.verdicts import Race, Ways, choices_of, raced, refusal

# A loop sums the first rows again and again: the table would take it too long.
_LOOPS, _LOOPED = ("row loop", "number loop"), 100
_CHECKED_ROWS = 1100


def _by_number(data: Any) -> Any:
    return np.array([sum(n * n for n in row) for row in data.tolist()])


def _by_row(data: Any) -> Any:
    sums = np.empty(len(data))
    for row in range(len(data)):
        sums[row] = np.sum(data[row] ** 2)
    return sums


def _at_once(data: Any) -> Any:
    return np.asarray(np.sum(data**2, axis=1))


def _einsum(data: Any) -> Any:
    return np.asarray(np.einsum("ij,ij->i", data, data))


def _tensorflow(data: Any) -> Any:
    return np.asarray(tf.reduce_sum(tf.square(data), axis=1))


_SUMS: Ways = {
    "row loop": (_by_row, "Loop over the rows."),
    "number loop": (_by_number, "Loop over the numbers."),
    "at once": (_at_once, "Sum the whole table in one call."),
    "einsum": (_einsum, "Multiply and add in one call of `np.einsum`."),
    "tf": (_tensorflow, "Sum with TensorFlow's operations."),
}


@dataclass(frozen=True, kw_only=True)
class Vectorised(Experiment):
    """What does a loop cost, and is "vectorised" one thing?"""

    rows: Annotated[int, Range(100, 10**6, unit="rows", help="In the table")] = 50_000
    columns: Annotated[int, Range(1, 1000, unit="numbers", help="In a row")] = 100

    name = "vectorised"
    baseline = "row loop"
    choices: ClassVar = choices_of(_SUMS)

    def __post_init__(self) -> None:
        """Refuse a table that no memory holds."""
        super().__post_init__()
        # In float64.
        check_fits("the table", 8 * self.rows * self.columns, "fewer rows or columns")

    def make_variants(self) -> Mapping[str, Variant]:
        """Each is compared with the loop over rows."""
        return raced(self._run, _SUMS, dict.fromkeys(_SUMS, self.baseline))

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that give other sums than exact arithmetic does."""
        without_gpus()
        data = self._table(_CHECKED_ROWS)
        exact = [math.fsum(x * x for x in row) for row in data.tolist()]
        answers = {name: sums(data) for name, (sums, _) in _SUMS.items()}
        reason = "gives other sums than exact arithmetic"
        yield refusal(reason, answers, exact, rtol=1e-9)

    def race(self, measured: Measurement) -> Race:
        """Which way is fastest, by how much, and the line that has it."""
        return Race(measured, self.choices, "rows", "The sum")

    def _table(self, rows: int) -> Any:
        return np.random.default_rng(0).standard_normal((rows, self.columns))

    def _run(self, name: str) -> Iterator[Yielded]:
        data = self._table(_LOOPED if name in _LOOPS else self.rows)
        sums, _ = _SUMS[name]
        yield from repeated(lambda: sums(data), len(data))
