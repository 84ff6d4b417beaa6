"""The ways to execute a training that are compared, and what each stands against."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.execution_mode import fits, observers, retracing
from perfkit.experiments.shared import loops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perfkit.experiments.shared.loop_job import Feed, Job
    from perfkit.measure.tick import Yielded

EAGER, GRAPH, FIT, UNWATCHED = "eager loop", "tf.function", "fit", "fit unwatched"
Kind = Literal["mode", "retracing", "observer"]


@dataclass(frozen=True)
class Way:
    """One way to execute a training.

    Attributes:
        name: In charts, files and on the command line.
        run: Trains the network it is given, without an end, and yields ticks.
        against: The way that it changes one thing of.
        advice: What to write to have it; for modes only.
        kind: ``"mode"`` for what may be called the fastest, ``"retracing"`` for what
            shows how a graph is traced again, ``"observer"`` for who watches ``fit``.
        feed: What its batches look like.
        missing: Says why it cannot run here; "" where it can.
        xla: What it tells ``compile`` of XLA; None leaves that to Keras.
    """

    name: str
    run: Callable[[Job, Any], Iterator[Yielded]]
    against: str = EAGER
    advice: str = ""
    kind: Kind = "mode"
    feed: Feed = "even"
    missing: Callable[[], str] = str
    xla: bool | None = None

    @property
    def changes(self) -> str:
        """The one thing it changes, in a sentence."""
        return (inspect.getdoc(self.run) or "").partition("\n")[0]


WAYS = {
    way.name: way
    for way in (
        Way(EAGER, loops.eager, advice="for features, labels in batches: step(...)"),
        Way("fit eagerly", fits.eagerly, FIT, "model.compile(..., run_eagerly=True)"),
        Way(GRAPH, loops.graph, advice="@tf.function"),
        Way(
            "tf.function XLA",
            loops.compiled,
            GRAPH,
            "@tf.function(jit_compile=True)",
        ),
        Way(FIT, fits.plain, GRAPH, "model.fit(batches, verbose=0)"),
        Way(
            "fit XLA",
            fits.compiled,
            FIT,
            "model.compile(..., jit_compile=True)",
            xla=True,
        ),
        Way(
            "fit without XLA",
            fits.uncompiled,
            FIT,
            "model.compile(..., jit_compile=False)",
            xla=False,
        ),
        Way(
            "fit 8 steps",
            fits.by_eight,
            FIT,
            "model.compile(..., steps_per_execution=8)",
        ),
        Way(
            "fit 64 steps",
            fits.by_many,
            FIT,
            "model.compile(..., steps_per_execution=64)",
        ),
        Way(
            "fit XLA 64 steps",
            fits.compiled_by_many,
            "fit 64 steps",
            "model.compile(..., jit_compile=True, steps_per_execution=64)",
            xla=True,
        ),
        Way("Python number", retracing.python_number, GRAPH, kind="retracing"),
        Way(
            "number as tensor",
            retracing.tensor_number,
            "Python number",
            kind="retracing",
        ),
        Way(
            "changing shapes",
            retracing.changing,
            GRAPH,
            kind="retracing",
            feed="changing",
        ),
        Way(
            "shapes left open",
            retracing.left_open,
            "changing shapes",
            kind="retracing",
            feed="changing",
        ),
        Way("made anew", retracing.made_anew, GRAPH, kind="retracing"),
        Way(
            "ragged last batch",
            retracing.ragged,
            GRAPH,
            kind="retracing",
            feed="ragged",
        ),
        Way(UNWATCHED, observers.nobody, FIT, kind="observer"),
        Way("metrics", observers.metrics, UNWATCHED, kind="observer"),
        Way("callback", observers.callback, UNWATCHED, kind="observer"),
        Way("progress bar", observers.progress_bar, UNWATCHED, kind="observer"),
        Way("validation", observers.validation, UNWATCHED, kind="observer"),
        Way(
            "histograms",
            observers.histograms,
            UNWATCHED,
            kind="observer",
            missing=observers.histograms_missing,
        ),
    )
}
# What is not traced again and again, for each way that is.
REMEDIES = {
    "Python number": "number as tensor",
    "changing shapes": "shapes left open",
    "made anew": GRAPH,
    "ragged last batch": GRAPH,
}
# What a single way is held against that is asked alone.
BASELINES: dict[Kind, str] = {
    "mode": EAGER,
    "retracing": GRAPH,
    "observer": UNWATCHED,
}
# What is asked together, by the question that it answers; the first of each is what
# the others are held against, and what is run twice to know the noise.
GROUPS = {
    "modes": (
        *(EAGER, "fit eagerly", GRAPH, "tf.function XLA"),
        *(FIT, "fit XLA", "fit without XLA", "fit 8 steps"),
    ),
    "steps per execution": (FIT, "fit 8 steps", "fit 64 steps", "fit XLA 64 steps"),
    "retracing": (
        *(GRAPH, "Python number", "number as tensor", "changing shapes"),
        *("shapes left open", "made anew", "ragged last batch"),
    ),
    "observers": (
        *(UNWATCHED, "metrics", "callback", "progress bar", "validation"),
        "histograms",
    ),
}


def alike(asked: Mapping[str, Way], *, xla: bool) -> dict[str, str]:
    """Say of each way that asks for what Keras does anyway which way has it already.

    Args:
        asked: The ways of a run, by name.
        xla: Whether Keras, left to itself, uses XLA here.
    """
    does = "compiles with XLA" if xla else "uses no XLA"
    return {
        name: f'is what "{way.against}" does here, where Keras {does} by itself'
        for name, way in asked.items()
        if way.xla is xla and way.against in asked
    }
