"""Ways to sum the squares of the rows of a table, from NumPy to NumPy.

The first line of each docstring says what a way changes; all give the same sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

_CHUNK = 1000


def table(rows: int, columns: int, seed: int = 0) -> Table:
    """A table of normal random numbers, shape (rows, columns)."""
    import numpy as np

    return np.random.default_rng(seed).standard_normal((rows, columns))


def by_number(data: Table) -> Table:
    """A Python loop over every single number."""
    import numpy as np

    return np.array([sum(number * number for number in row) for row in data.tolist()])


def by_row(data: Table) -> Table:
    """One call of NumPy for every row."""
    import numpy as np

    sums = np.empty(len(data))
    for row in range(len(data)):
        sums[row] = np.sum(data[row] ** 2)
    return sums


def at_once(data: Table) -> Table:
    """One call for the whole table, which first makes a table of all squares."""
    import numpy as np

    return np.asarray(np.sum(data**2, axis=1))


def in_chunks(data: Table) -> Table:
    """The same call for 1000 rows at a time: their squares stay in the cache."""
    import numpy as np

    parts = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    return np.concatenate([np.sum(part**2, axis=1) for part in parts])


def einsum(data: Table) -> Table:
    """One call that multiplies and adds without a table in between."""
    import numpy as np

    return np.asarray(np.einsum("ij,ij->i", data, data))


def tensorflow(data: Table) -> Table:
    """TensorFlow's operations, one by one; the table is copied to its device."""
    import numpy as np
    import tensorflow as tf

    return np.asarray(tf.reduce_sum(tf.square(data), axis=1))


def graph() -> Callable[[Table], Table]:
    """The same operations as one tf.function."""
    import numpy as np
    import tensorflow as tf

    @tf.function  # type: ignore[untyped-decorator]
    def sums(data: Any) -> Any:
        return tf.reduce_sum(tf.square(data), axis=1)

    return lambda data: np.asarray(sums(data))
