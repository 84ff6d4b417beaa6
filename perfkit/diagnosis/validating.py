"""The validation of a running fit, shortened where it is long, with its share told.

A trial lasts seconds. Where validating takes longer than a moment, the first validation
of a trial shows how many of its batches fill one, and the later ones end there; what
they take is scaled up to all batches.
"""

from __future__ import annotations

import time
from typing import Any

from perfkit.measure.tick import Note, Pause

VALIDATION = "validation"
# The note of a trial whose validations were shortened: the share of them that was run.
SHORTENED = "validation shortened to"
# The note where nobody knows how long a validation is, and it is not over soon.
UNKNOWN = "validation of unknown length"
_MOMENT_S = 0.35


class Validating:
    """Watches the validations of a trial.

    Args:
        steps: Of a whole validation; None where nobody knows.
    """

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self._limit: int | None = None
        self._done = self._validations = 0
        self._began = 0.0

    def begin(self) -> None:
        """Begin a validation."""
        self._done, self._began = 0, 0.0

    def reach(self, done: int, callback: Any) -> None:
        """Count batches, and end the validation where it took a moment."""
        self._done = min(done, self._steps or done)
        if not self._began:
            # The first batch of all traces what the others run.
            self._began = time.perf_counter()
        elif self._limit is None and self._validations == 0:
            long = time.perf_counter() - self._began > _MOMENT_S
            if long and self._done != self._steps:
                self._limit = self._done
        if self._limit is not None and self._done >= self._limit:
            callback.model.stop_evaluating = True

    def end(self, examples: float) -> tuple[Note | Pause, ...]:
        """End it, and give what a trial is to tell of it.

        Args:
            examples: Trained on for each validation of the real training.
        """
        self._validations += 1
        first = self._validations == 1
        if self._limit is None:
            return (Pause(VALIDATION, every=examples),)
        if self._steps is None:
            told = (Note(UNKNOWN, self._limit),) if first else ()
            return *told, Pause(VALIDATION)
        share = self._limit / self._steps
        told = (Note(SHORTENED, share),) if first else ()
        return *told, Pause(VALIDATION, every=examples * share)
