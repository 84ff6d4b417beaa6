"""Is a word's vector better looked up, or multiplied out?

The suspect: one-hot rows times a table multiply by zeros for every word there is.
The test: give the vectors of the same words both ways and compare words per second.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.trial import Yielded
from perfkit.questions.base import Experiment, Range, check_fits
from perfkit.questions.shared import keras, loops, tf
from perfkit.questions.shared.benchmark import repeated, without_gpus
from perfkit.questions.shared.verdicts import Race, Ways, choices_of, raced, refusal

_FLOAT, _CLOSE = 4, 1e-5


def _one_hot(vectors: Any) -> Any:
    table, words = tf.Variable(vectors), len(vectors)

    @tf.function  # type: ignore[untyped-decorator]
    def look_up(ids: Any) -> Any:
        return tf.one_hot(ids, words) @ table

    return look_up


def _embedding(vectors: Any) -> Any:
    look_up = keras.layers.Embedding(*vectors.shape)
    look_up.build()
    look_up.set_weights([vectors])
    look_up = tf.function(look_up)
    return look_up


_LOOKUPS: Ways = {
    "one-hot product": (_one_hot, "Multiply one-hot rows by the table."),
    "lookup": (_embedding, "Look words up with `keras.layers.Embedding`."),
}


@dataclass(frozen=True, kw_only=True)
class EmbeddingLookup(Experiment):
    """Is a word's vector better looked up, or multiplied out?"""

    words: Annotated[int, Range(2, 10**6, unit="words", help="In the table")] = 10_000
    width: Annotated[int, Range(1, 4096, unit="numbers", help="In a vector")] = 64
    batch: Annotated[int, Range(1, 65_536, unit="words", help="In a step")] = 256

    name = "embedding-lookup"
    baseline = "one-hot product"
    choices: ClassVar = choices_of(_LOOKUPS)

    def __post_init__(self) -> None:
        """Refuse a product that no memory holds."""
        super().__post_init__()
        _, long, longest = sorted((self.words, self.batch, self.width))
        choose = "fewer words, a smaller batch or a smaller width"
        check_fits("one-hot rows, table or answer", _FLOAT * long * longest, choose)

    def make_variants(self) -> Mapping[str, Variant]:
        """The lookup is compared with the product."""
        return raced(self._run, _LOOKUPS, dict.fromkeys(_LOOKUPS, self.baseline))

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that give other vectors than the table holds."""
        without_gpus()
        vectors, ids = self._draw()
        exact = np.stack([vectors[word] for word in ids])
        answers = {name: make(vectors)(ids) for name, (make, _) in _LOOKUPS.items()}
        reason = "gives other vectors than the table holds"
        yield refusal(reason, answers, exact, atol=_CLOSE)

    def race(self, measured: Measurement) -> Race:
        """Which way is fastest, and by how much."""
        return Race(measured, self.choices, "words", "The lookup")

    def _run(self, name: str) -> Iterator[Yielded]:
        (make, _), (vectors, ids) = _LOOKUPS[name], self._draw()
        yield from repeated(functools.partial(make(vectors), ids), len(ids), loops.wait)

    def _draw(self) -> tuple[Any, Any]:
        draw = np.random.default_rng(0)
        vectors = draw.standard_normal((self.words, self.width), np.float32)
        return vectors, draw.integers(self.words, size=self.batch, dtype=np.int32)
