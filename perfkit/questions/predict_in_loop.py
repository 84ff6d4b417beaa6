"""Why is predict in a loop so slow?

The suspect: each call of ``predict`` makes a data set, callbacks and a loop first.
The test: score rows in several ways and compare rows per second.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.trial import READY, Yielded, every
from perfkit.findings.record import Verdict
from perfkit.questions.base import Choice, Experiment
from perfkit.questions.shared import tf
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.verdicts import (
    Race,
    Ways,
    choices_of,
    fact,
    quoted,
    raced,
    refusal,
)


def _predict(model: Any, rows: Any) -> Iterator[Any]:
    for row in rows:
        scores = model.predict(row[np.newaxis], verbose=0)
        yield scores


def _call(model: Any, rows: Any) -> Iterator[Any]:
    for row in rows:
        scores = model(row[np.newaxis]).numpy()
        yield scores


def _graph(model: Any, rows: Any) -> Iterator[Any]:
    score = tf.function(model)
    for row in rows:
        scores = score(row[np.newaxis]).numpy()
        yield scores


def _on_batch(model: Any, rows: Any) -> Iterator[Any]:
    for row in rows:
        scores = model.predict_on_batch(row[np.newaxis])
        yield scores


def _batches(model: Any, batches: Any, size: int) -> Iterator[Any]:
    for batch in batches:
        scores = model.predict(batch, batch_size=size, verbose=0)
        yield scores


_ONE = "predict 1 row"
_WAYS: Ways = {
    _ONE: (_predict, "Call `predict` for every row."),
    "model(x)": (_call, "Call the model for every row, without `predict`."),
    "tf.function": (_graph, "Call a `tf.function` of the model for every row."),
    "predict_on_batch": (_on_batch, "Call `predict_on_batch` for every row."),
    "predict 32 rows": (partial(_batches, size=32), "Predict 32 rows at once."),
    "predict 1,024 rows": (partial(_batches, size=1024), "Predict 1,024 rows at once."),
}
# Rows in a call; the other ways take one row each.
_SIZES = {"predict 32 rows": 32, "predict 1,024 rows": 1024}


@dataclass(frozen=True, kw_only=True)
class PredictInLoop(Experiment):
    """Why is predict in a loop so slow?"""

    model: Annotated[str, Choice(tuple(MODELS), help="What scores the rows")] = "dense"

    name = "predict-in-a-loop"
    baseline = _ONE
    choices: ClassVar = choices_of(_WAYS)

    def make_variants(self) -> Mapping[str, Variant]:
        """Each is compared with ``predict`` row by row; the graph, with its model."""
        against = dict.fromkeys(_WAYS, _ONE) | {"tf.function": "model(x)"}
        return raced(self._run, _WAYS, against)

    def prepare(self) -> Iterator[Yielded]:
        """Refuse ways that give other scores than ``predict`` does row by row."""
        without_gpus()
        network, scores = MODELS[self.model].build(), dict[str, Any]()
        for name, (score, _) in _WAYS.items():
            scores[name] = np.concatenate([*score(network, self._rows(40, name))])
        # Batches add up in another order than single rows do.
        reason = "gives other scores than predict"
        yield refusal(reason, scores, scores[_ONE], atol=1e-4)

    def race(self, measured: Measurement) -> Race:
        """Which way scores most rows per second."""
        return Race(measured, self.choices, "rows", "Scoring")

    def verdict(self, measured: Measurement) -> Verdict:
        """Say how to score, what a call costs, and what is fastest without batches."""
        singles = {n: c for n, c in self.choices.items() if n not in _SIZES}
        best = Race(measured, singles, "rows").winner
        advice = f"Where rows come one at a time, use {quoted(best)}." if best else ""
        calls = {
            t.variant: t.seconds(_SIZES.get(t.variant, 1)) for t in measured.timings
        }
        facts = (fact(f"One call: {n}", s, units.seconds) for n, s in calls.items())
        return self.race(measured).verdict(facts=tuple(facts), next=advice)

    def _rows(self, count: int, name: str) -> Any:
        rows, size = MODELS[self.model].batch(count)[0], _SIZES.get(name, 1)
        return rows if size == 1 else np.split(rows, range(size, count, size))

    def _run(self, name: str) -> Iterator[Yielded]:
        network, rows = MODELS[self.model].build(), self._rows(1024, name)
        scores = _WAYS[name][0](network, itertools.cycle(rows))
        yield READY
        # The scores lie in NumPy's memory, so the device has finished them.
        yield from every(map(len, scores))
