"""Is a word's vector better looked up, or multiplied out?

The suspect: one-hot rows times a table multiply by zeros for every word there is.
The test: give the vectors of the same words both ways and compare words per second.
NumPy's ways are there to be seen beside them: no model can learn through them.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Range
from perfkit.measure.measurement import Arm
from perfkit.measure.tick import READY, REFUSED, Note, every
from perfkit.verdicts.fastest import judge
from perfkit.workloads import lookups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perfkit.findings.record import Verdict
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.tick import Yielded
    from perfkit.workloads.lookups import Ids, Lookup

_CLOSE = 1e-5
_WAYS = {
    "one-hot product": lookups.one_hot,
    "lookup": lookups.embedding,
    "NumPy one-hot": lookups.numpy_one_hot,
    "NumPy index": lookups.numpy_index,
}
# What a model can have in it.
_LINES = {
    "one-hot product": "tf.one_hot(ids, words) @ table",
    "lookup": "keras.layers.Embedding(words, width)",
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

    def variants(self) -> Mapping[str, Arm]:
        """All ways, each held against the product in TensorFlow."""
        return {
            name: Arm(
                name,
                functools.partial(self._run, name),
                (inspect.getdoc(way) or "").partition("\n")[0],
                self.baseline,
            )
            for name, way in _WAYS.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Refuse ways that give other vectors than the table holds."""
        import numpy as np
        import tensorflow as tf

        # Preparing needs no GPU, and one that is taken here is missed by a trial.
        tf.config.set_visible_devices([], "GPU")
        table, ids = self._table_and_ids()
        exact = [table[int(one)].tolist() for one in ids]
        wrong = {
            name: "gives other vectors than the table holds"
            for name, way in _WAYS.items()
            if not np.allclose(np.asarray(way(table)(ids)), exact, atol=_CLOSE)
        }
        yield Note(REFUSED, wrong)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, by how much, and the line that has it."""
        return judge(measured, _LINES, "words")

    def _run(self, name: str) -> Iterator[Yielded]:
        import tensorflow as tf

        table, ids = self._table_and_ids()
        look_up = _WAYS[name](table)
        yield READY
        yield from every(_steps(look_up, ids), sync=tf.test.experimental.sync_devices)

    def _table_and_ids(self) -> tuple[lookups.Table, Ids]:
        table = lookups.table(self.words, self.width)
        return table, lookups.ids(self.batch, self.words)


def _steps(look_up: Lookup, ids: Ids) -> Iterator[int]:
    while True:
        look_up(ids)
        yield len(ids)
