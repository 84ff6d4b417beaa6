"""Who watches a training: each observer of ``fit`` alone, over whole epochs.

An observer that works at the end of an epoch costs what the epoch's length makes of it,
so a tick holds whole epochs.
"""

from __future__ import annotations

import functools
import importlib.util
import shutil
from typing import TYPE_CHECKING, Any

from perfkit.experiments.execution_mode.fits import prepared
from perfkit.experiments.shared import cache, inside_fit
from perfkit.experiments.shared.loops import wait
from perfkit.measure.tick import READY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import keras

    from perfkit.experiments.shared.loop_job import Job
    from perfkit.measure.tick import Yielded

_ENDLESS = 10**6
# Of an epoch's steps, as many batches as validation_split=0.2 holds back.
VALIDATION_SHARE = 5


def nobody(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """A fit in epochs that nobody watches: no metrics, no callbacks, verbose=0."""
    yield from _watched(job, network)


def metrics(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with metrics=["accuracy"]."""
    yield from _watched(job, network, metrics=["accuracy"])


def callback(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with a callback of one's own that keeps the loss of every batch."""
    import keras

    class Keeping(keras.callbacks.Callback):  # type: ignore[misc]
        """Keeps the losses of an epoch."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._losses: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._losses.append(logs["loss"])

    yield from _watched(job, network, callbacks=[Keeping()])


def progress_bar(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with verbose=1, the progress bar; it writes into a pipe here."""
    yield from _watched(job, network, verbose=1)


def validation(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with validation after every epoch, on a fifth as many batches."""
    batches = max(1, job.epoch // VALIDATION_SHARE)
    held_back = job.first(batches).batches()
    yield from _watched(job, network, validation_data=held_back)


def histograms(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with TensorBoard(histogram_freq=1): all weights after every epoch."""
    import keras

    folder = cache.folder() / "histograms"
    # A trial is ended without a word, so the last one's files are still there.
    shutil.rmtree(folder, ignore_errors=True)
    board = keras.callbacks.TensorBoard(str(folder), histogram_freq=1)
    yield from _watched(job, network, callbacks=[board])


def histograms_missing() -> str:
    """Say why histograms cannot be written here; "" where they can."""
    if importlib.util.find_spec("tensorboard") is not None:
        return ""
    return "needs TensorBoard, which is not installed: `pip install tensorboard`"


def _watched(
    job: Job,
    network: keras.Model,
    *,
    metrics: list[str] | None = None,
    callbacks: list[Any] | None = None,
    **options: Any,
) -> Iterator[Yielded]:
    """Train with ``fit`` in epochs; ``options`` are as of ``fit``."""
    prepared(job, network, metrics=metrics)
    steps = job.epoch if job.steps is None else job.steps
    fit = functools.partial(
        network.fit,
        job.batches(),
        steps_per_epoch=steps,
        epochs=_ENDLESS if job.steps is None else 1,
        shuffle=False,
        **({"verbose": 0} | options),
    )
    yield READY
    yield from inside_fit.ticks(
        lambda counting: fit(callbacks=[*(callbacks or ()), counting]),
        examples=job.batch,
        whole_epochs=steps,
        sync=wait,
    )
