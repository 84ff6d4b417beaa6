"""Is a word's vector better looked up, or multiplied out?

The suspect: one-hot rows times a table multiply by zeros for every word there is.
The test: give the vectors of the same words both ways and compare words per second.
Those of NumPy are there to be seen beside them: no model can learn through them.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Range
from perfkit.experiments.shared.benchmark import without_gpus
from perfkit.experiments.shared.code import code_of
from perfkit.experiments.shared.race import Choice, Race
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import READY, REFUSED, Note, Yielded, every

Table = NDArray[np.float32]
Ids = NDArray[np.int32]
Lookup = Callable[[Ids], Any]

_CLOSE = 1e-5
# The rows of zeros and ones are held twice over.
_FLOAT, _MOST_BYTES = 4, 2_000_000_000


def table(words: int, width: int, seed: int = 0) -> Table:
    """The vectors of all words, shape (words, width)."""
    return np.random.default_rng(seed).standard_normal((words, width), np.float32)


def ids(count: int, words: int, seed: int = 0) -> Ids:
    """So many words, drawn at random."""
    return np.random.default_rng(seed).integers(words, size=count, dtype=np.int32)


def one_hot(vectors: Table) -> Lookup:
    """A row of zeros with a single one for each word, times the whole table."""
    import tensorflow as tf

    known = tf.Variable(vectors)

    return _in_graph(_product(known, len(vectors)))


def _product(table: Any, words: int) -> Callable[[Any], Any]:
    import tensorflow as tf

    def look_up(ids: Any) -> Any:
        return tf.one_hot(ids, words) @ table

    return look_up


def embedding(vectors: Table) -> Lookup:
    """A keras.layers.Embedding: the rows are copied from where they lie."""
    look_up = _layer(*vectors.shape)
    look_up.build()
    look_up.set_weights([vectors])
    return _in_graph(lambda ids: look_up(ids))


def _layer(words: int, width: int) -> Any:
    import keras

    look_up = keras.layers.Embedding(words, width)
    return look_up


def _in_graph(look_up: Any) -> Lookup:
    import tensorflow as tf

    rows = _graph(look_up)
    return lambda ids: rows(tf.constant(ids))


def _graph(look_up: Any) -> Any:
    import tensorflow as tf

    look_up = tf.function(look_up)
    return look_up


def numpy_one_hot(vectors: Table) -> Lookup:
    """Zeros and ones times the table, in NumPy."""

    def look_up(ids: Ids) -> Table:
        ones = np.zeros((len(ids), len(vectors)), np.float32)
        ones[np.arange(len(ids)), ids] = 1
        return np.asarray(ones @ vectors)

    return look_up


def numpy_index(vectors: Table) -> Lookup:
    """The rows are copied by NumPy's own indexing."""

    def look_up(ids: Ids) -> Table:
        return vectors[ids]

    return look_up


_VARIANTS = {
    "one-hot product": one_hot,
    "lookup": embedding,
    "NumPy one-hot": numpy_one_hot,
    "NumPy index": numpy_index,
}
# The functions whose lines a reader is shown.
_SHOWN: dict[str, tuple[Callable[..., Any], ...]] = {
    "one-hot product": (_product, _graph),
    "lookup": (_layer, _graph),
    "NumPy one-hot": (numpy_one_hot,),
    "NumPy index": (numpy_index,),
}
# What a model can have in it.
_CHOICES = {
    "one-hot product": Choice(
        "Multiply one-hot rows by the table.", functools.partial(code_of, _product)
    ),
    "lookup": Choice(
        "Look words up with `keras.layers.Embedding`.",
        functools.partial(code_of, _layer),
    ),
}


@dataclass(frozen=True, kw_only=True)
class EmbeddingLookup(Experiment):
    """Is a word's vector better looked up, or multiplied out?"""

    words: Annotated[int, Range(2, 1_000_000, unit="words", help="In the table")] = (
        10_000
    )
    width: Annotated[int, Range(1, 4096, unit="numbers", help="In a word's vector")] = (
        64
    )
    batch: Annotated[int, Range(1, 65_536, unit="words", help="Looked up at once")] = (
        256
    )

    name = "embedding-lookup"
    baseline = "one-hot product"
    choices = _CHOICES

    def __post_init__(self) -> None:
        """Refuse a product that no memory holds."""
        super().__post_init__()
        largest = _FLOAT * self.words * max(self.batch, self.width)
        if largest > _MOST_BYTES:
            raise BadParameterError(
                f"one-hot rows or the table would take {units.size(largest)}; choose "
                "fewer words, a smaller batch or a smaller width."
            )

    def make_variants(self) -> Mapping[str, Variant]:
        """All variants, each held against the product in TensorFlow."""
        return {
            name: Variant(
                name,
                functools.partial(self._run, name),
                (inspect.getdoc(one) or "").partition("\n")[0],
                self.baseline,
                code=code_of(*_SHOWN[name]),
            )
            for name, one in _VARIANTS.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that give other vectors than the table holds."""
        without_gpus()
        vectors, chosen = self._table_and_ids()
        exact = [vectors[int(one)].tolist() for one in chosen]
        wrong = {
            name: "gives other vectors than the table holds"
            for name, one in _VARIANTS.items()
            if not np.allclose(np.asarray(one(vectors)(chosen)), exact, atol=_CLOSE)
        }
        yield Note(REFUSED, wrong)

    def race(self, measured: Measurement) -> Race:
        """Which way is fastest, by how much, and the line that has it."""
        return Race(measured, _CHOICES, "words", "The lookup")

    def _run(self, name: str) -> Iterator[Yielded]:
        import tensorflow as tf

        vectors, chosen = self._table_and_ids()
        look_up = _VARIANTS[name](vectors)
        # NumPy waits for no GPU, and would start one by asking.
        graph = not name.startswith("NumPy")
        sync = tf.test.experimental.sync_devices if graph else lambda: None
        yield READY
        yield from every(_steps(look_up, chosen), sync=sync)

    def _table_and_ids(self) -> tuple[Table, Ids]:
        return table(self.words, self.width), ids(self.batch, self.words)


def _steps(look_up: Lookup, ids: Ids) -> Iterator[int]:
    while True:
        look_up(ids)
        yield len(ids)
