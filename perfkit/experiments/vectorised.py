"""What does a loop cost, and is "vectorised" one thing?

The suspect: a Python loop pays for every row, or even for every number.
The test: sum the squares of the rows of one table in several ways and compare rows per
second. NumPy's variants run on the CPU, however they are written.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Range
from perfkit.experiments.shared.benchmark import without_gpus
from perfkit.experiments.shared.code import code_of
from perfkit.experiments.shared.race import Choice, Race
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import READY, REFUSED, Note, Yielded, every

Table = NDArray[np.float64]

# Rows of a step of a loop, which would take too long over the whole table.
_LOOPED = 100
_CLOSE = 1e-9
_CHECKED_ROWS = 1100

_CHUNK = 1000


def table(rows: int, columns: int, seed: int = 0) -> Table:
    """A table of normal random numbers, shape (rows, columns)."""
    return np.random.default_rng(seed).standard_normal((rows, columns))


def by_number(data: Table) -> Table:
    """A Python loop over every single number."""
    sums = np.array([sum(n * n for n in row) for row in data.tolist()])
    return sums


def by_row(data: Table) -> Table:
    """One call of NumPy for every row."""
    sums = np.empty(len(data))
    for row in range(len(data)):
        sums[row] = np.sum(data[row] ** 2)
    return sums


def at_once(data: Table) -> Table:
    """One call for the whole table, which first makes a table of all squares."""
    sums = np.asarray(np.sum(data**2, axis=1))
    return sums


def in_chunks(data: Table) -> Table:
    """The same call for 1000 rows at a time: their squares stay in the cache."""
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    sums = np.concatenate([np.sum(chunk**2, axis=1) for chunk in chunks])
    return sums


def einsum(data: Table) -> Table:
    """One call that multiplies and adds without a table in between."""
    sums = np.asarray(np.einsum("ij,ij->i", data, data))
    return sums


def tensorflow(data: Table) -> Table:
    """TensorFlow's operations, one by one; the table is copied to its device."""
    import tensorflow as tf

    sums = np.asarray(tf.reduce_sum(tf.square(data), axis=1))
    return sums


def graph() -> Callable[[Table], Table]:
    """The same operations as one tf.function."""
    import tensorflow as tf

    @tf.function  # type: ignore[untyped-decorator]
    def sum_rows(data: Any) -> Any:
        return tf.reduce_sum(tf.square(data), axis=1)

    return lambda data: np.asarray(sum_rows(data))


_SUMS: dict[str, Callable[..., Any]] = {
    "row loop": by_row,
    "number loop": by_number,
    "at once": at_once,
    "in chunks": in_chunks,
    "einsum": einsum,
    "tf": tensorflow,
    "tf.function": graph,
}
_DO = {
    "row loop": "Loop over the rows.",
    "number loop": "Loop over the numbers.",
    "at once": "Sum the whole table in one call.",
    "in chunks": "Sum 1000 rows at a time: their squares stay in the cache.",
    "einsum": "Multiply and add in one call of `np.einsum`.",
    "tf": "Sum with TensorFlow's operations.",
    "tf.function": "Sum with TensorFlow's operations in a `tf.function`.",
}
_CHOICES = {
    name: Choice(do, functools.partial(code_of, _SUMS[name]))
    for name, do in _DO.items()
}


@dataclass(frozen=True, kw_only=True)
class Vectorised(Experiment):
    """What does a loop cost, and is "vectorised" one thing?"""

    rows: Annotated[int, Range(100, 1_000_000, unit="rows", help="In the table")] = (
        50_000
    )
    columns: Annotated[int, Range(1, 1000, unit="numbers", help="In a row")] = 100

    name = "vectorised"
    baseline = "row loop"
    choices = _CHOICES

    def make_variants(self) -> Mapping[str, Variant]:
        """All variants, each held against the loop over rows but the graph."""
        return {
            name: Variant(
                name,
                functools.partial(self._run, name),
                (inspect.getdoc(sums) or "").partition("\n")[0],
                "tf" if name == "tf.function" else self.baseline,
            )
            for name, sums in _SUMS.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that give other sums than exact arithmetic does."""
        without_gpus()
        data = table(_CHECKED_ROWS, self.columns)
        exact = [math.fsum(x * x for x in row) for row in data.tolist()]
        wrong = {
            name: "gives other sums than exact arithmetic"
            for name in _SUMS
            if not np.allclose(_method(name)(data), exact, rtol=_CLOSE)
        }
        yield Note(REFUSED, wrong)

    def race(self, measured: Measurement) -> Race:
        """Which way is fastest, by how much, and the line that has it."""
        return Race(measured, _CHOICES, "rows", "The sum")

    def _run(self, name: str) -> Iterator[Yielded]:
        data = table(self.rows, self.columns)
        part = _LOOPED if name.endswith("loop") else self.rows
        parts = [data[at : at + part] for at in range(0, self.rows, part)]
        sums = _method(name)
        yield READY
        yield from every(_steps(sums, parts))


def _method(name: str) -> Callable[[Any], Any]:
    # The graph is made where it is run; the others are plain functions.
    return graph() if name == "tf.function" else _SUMS[name]


def _steps(sums: Callable[[Any], Any], parts: list[Any]) -> Iterator[int]:
    for part in itertools.cycle(parts):
        sums(part)
        yield len(part)
