"""The validation of a running fit, shortened where it is long, with its share told.

A trial lasts seconds. Where validating takes longer than a moment, the first validation
of a trial shows how many of its batches fill one, and the later ones end there; what
they take is scaled up to all batches. What comes before their first batch is done (an
iterator is made, files are opened) comes once in each validation, and is not scaled.
"""

from __future__ import annotations

import time
from typing import Any

from perfkit.measure.tick import Note, Pause

VALIDATION = "validation"
# What comes before the first batch of a validation that is shortened.
START = "validation start"
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
        # Batches of the first execution, and whether its time was told by itself.
        self._first, self._apart = 0, False

    def begin(self) -> None:
        """Begin a validation."""
        self._done, self._began, self._first, self._apart = 0, 0.0, 0, False

    def reach(self, done: int, callback: Any) -> bool:
        """Count batches, and end the validation where it took a moment.

        Returns:
            Whether what came by now is to be told by itself: see ``start``.
        """
        self._done = min(done, self._steps or done)
        first = not self._began
        if first:
            # The first batch of all traces what the others run.
            self._began, self._first = time.perf_counter(), self._done
        elif self._limit is None and self._validations == 0:
            long = time.perf_counter() - self._began > _MOMENT_S
            if long and self._done != self._steps:
                self._limit = self._done
        if self._limit is not None and self._done >= self._limit:
            callback.model.stop_evaluating = True
        return first and self._steps is not None and self._done < (self._limit or 0)

    def start(self, examples: float) -> Pause:
        """Give what a trial is to tell once the first batch is done.

        Args:
            examples: Trained on for each validation of the real training.
        """
        self._apart = True
        return Pause(START, every=examples)

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
        if self._apart:
            share = (self._limit - self._first) / (self._steps - self._first)
        return *told, Pause(VALIDATION, every=examples * share)
