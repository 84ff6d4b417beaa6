"""TensorFlow's profiler, with marks that xprof takes for steps.

Keras's own callback marks its batches without ``_r=1``, and xprof then sees no step.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = "train"
_LOG = "said.txt"
_MOST_SAID = 20_000


class Marks:
    """Records a trace into a folder.

    Args:
        folder: Where to; what lies there besides is left alone.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def start(self) -> None:
        """Begin to record.

        TensorFlow's own levels are what is wanted (operations, no Python calls), and
        2.21 does not take others: it ignores the options with a warning.

        Raises:
            BadParameterError: Another profiler runs in this training.
        """
        import tensorflow as tf

        try:
            with self._heard():
                tf.profiler.experimental.start(self._folder)
        except tf.errors.AlreadyExistsError:
            raise BadParameterError(
                "Another profiler runs in this training; take it out, such as "
                "profile_batch of a TensorBoard callback."
            ) from None

    def stop(self) -> None:
        """End, and write the trace."""
        import tensorflow as tf

        with self._heard():
            tf.profiler.experimental.stop()

    def mark(self, number: int) -> Any:
        """Mark what is done within it as a step."""
        import tensorflow as tf

        return tf.profiler.experimental.Trace(STEP, step_num=number, _r=1)

    @property
    def said(self) -> str:
        """What TensorFlow logged while it started and stopped."""
        log = Path(self._folder) / _LOG
        return log.read_text(errors="replace")[:_MOST_SAID] if log.exists() else ""

    @property
    def size(self) -> int:
        """Bytes of the trace."""
        return sum(path.stat().st_size for path in traces(self._folder))

    @contextlib.contextmanager
    def _heard(self) -> Iterator[None]:
        """Let what is written to standard error meanwhile go into a file."""
        before = os.dup(2)
        log = os.open(
            Path(self._folder) / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        os.dup2(log, 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(log)


def traces(folder: str) -> list[Path]:
    """The files of a trace."""
    return sorted(Path(folder).rglob("*.xplane.pb"))
