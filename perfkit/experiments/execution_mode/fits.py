"""The training as ``fit`` runs it, in the ways that ``compile`` offers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import inside_fit
from perfkit.experiments.shared import loop_job as jobs
from perfkit.experiments.shared.loops import wait
from perfkit.experiments.shared.traces import Traces, telling
from perfkit.measure.tick import READY, Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    import keras

    from perfkit.experiments.shared.loop_job import Job
    from perfkit.measure.tick import Yielded

# Longer than any trial: the end of an epoch is what the observers' arms are about.
_ENDLESS = 10**9
# The note that says whether Keras, left to itself, compiles with XLA on this machine.
BY_DEFAULT = "fit uses XLA"


def plain(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """model.fit instead of your own loop, with XLA only where Keras chooses it."""
    yield Note(BY_DEFAULT, uses_xla(network))
    yield from fitted(job, network)


def eagerly(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with run_eagerly=True: Python runs every operation."""
    yield from fitted(job, network, run_eagerly=True)


def compiled(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with jit_compile=True: XLA compiles the step."""
    yield from fitted(job, network, jit_compile=True)


def uncompiled(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with jit_compile=False: a graph, and no XLA."""
    yield from fitted(job, network, jit_compile=False)


def by_eight(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with steps_per_execution=8: back to Python every 8 steps."""
    yield from fitted(job, network, steps_per_execution=8)


def by_many(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with steps_per_execution=64: back to Python every 64 steps."""
    yield from fitted(job, network, steps_per_execution=64)


def compiled_by_many(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """XLA and steps_per_execution=64 together."""
    yield from fitted(job, network, jit_compile=True, steps_per_execution=64)


def uses_xla(network: keras.Model) -> bool:
    """Whether Keras compiles this network with XLA where nobody says anything of it."""
    network.compile(optimizer="sgd", loss="mse")
    return bool(network.jit_compile)


def fitted(job: Job, network: keras.Model, **options: Any) -> Iterator[Yielded]:
    """Train with ``fit``, in one epoch that has no end.

    Args:
        job: What to train on.
        network: What to train.
        **options: As of ``compile``.
    """
    traces = prepared(job, network, **options)
    fit = functools.partial(
        network.fit,
        job.batches(),
        steps_per_epoch=_ENDLESS if job.steps is None else job.steps,
        verbose=0,
        shuffle=False,
    )
    yield READY
    ticks = inside_fit.ticks(
        lambda counting: fit(callbacks=[counting]),
        examples=job.batch,
        sync=wait,
        stepped=traces.step,
    )
    # A step that runs eagerly is never traced.
    yield from ticks if options.get("run_eagerly") else telling(ticks, traces)


def prepared(job: Job, network: keras.Model, **options: Any) -> Traces:
    """Compile the network and have the traces of its train step counted.

    Args:
        job: What it will be trained on.
        network: What to compile.
        **options: As of ``compile``.
    """
    network.compile(
        optimizer=jobs.optimizer_for(network), loss=jobs.loss_function(), **options
    )
    traces, train_step = Traces(), network.train_step

    def traced_step(data: Any) -> Any:
        traces.trace(features=data[0], labels=data[1])
        return train_step(data)

    network.train_step = traced_step
    return traces
