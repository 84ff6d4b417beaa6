"""Ways to take the rows of a table that a list of numbers names.

The first line of each docstring says what a way changes; all give the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Lookup = Callable[[Ids], Any]


def table(words: int, width: int, seed: int = 0) -> Table:
    """The vectors of all words, shape (words, width)."""
    import numpy as np

    return np.random.default_rng(seed).standard_normal((words, width), np.float32)


def ids(count: int, words: int, seed: int = 0) -> Ids:
    """So many words, drawn at random."""
    import numpy as np

    return np.random.default_rng(seed).integers(words, size=count, dtype=np.int32)


def one_hot(vectors: Table) -> Lookup:
    """A row of zeros with a single one for each word, times the whole table."""
    import tensorflow as tf

    known = tf.Variable(vectors)

    @tf.function  # type: ignore[untyped-decorator]
    def rows(of: Any) -> Any:
        return tf.one_hot(of, known.shape[0]) @ known

    return lambda of: rows(tf.constant(of))


def embedding(vectors: Table) -> Lookup:
    """A keras.layers.Embedding: the rows are copied from where they lie."""
    import keras
    import tensorflow as tf

    known = keras.layers.Embedding(*vectors.shape)
    known.build()
    known.set_weights([vectors])
    rows = tf.function(lambda of: known(of))
    return lambda of: rows(tf.constant(of))


def numpy_one_hot(vectors: Table) -> Lookup:
    """Zeros and ones times the table, in NumPy."""
    import numpy as np

    def rows(of: Ids) -> Table:
        ones = np.zeros((len(of), len(vectors)), np.float32)
        ones[np.arange(len(of)), of] = 1
        return np.asarray(ones @ vectors)

    return rows


def numpy_index(vectors: Table) -> Lookup:
    """The rows are copied by NumPy's own indexing."""
    return lambda of: vectors[of]
