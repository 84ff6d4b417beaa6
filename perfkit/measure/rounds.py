"""Every variant once per round, in random order, until the answer is narrow enough."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit.measure import statistics
from perfkit.measure.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.measure.statistics import Comparison, Timing
    from perfkit.measure.tick import Yielded

# The twin of the first baseline: what two runs of the same thing differ by here, today.
TWIN = "the baseline again"


@dataclass(frozen=True)
class Arm:
    """One variant as the engine sees it.

    Attributes:
        name: Its name in the experiment, in charts and in files.
        work: Makes the generator that does the work; called in a fresh process.
        changes: The one thing it changes, in a sentence.
        against: The variant it is compared with; "" or its own name for none.
        unavailable: Why it is not run on this machine; "" where it is.
    """

    name: str
    work: Callable[[], Iterator[Yielded]]
    changes: str = ""
    against: str = ""
    unavailable: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """All that has been measured so far, and what it says.

    Attributes:
        arms: The variants asked for, in order, without the twin.
        trials: Every trial that has ended, in order; the twin's bear the name ``TWIN``.
        samples: The machine's load, as ``Finding.samples`` holds it.
        notes: What ``prepare`` told, by name.
    """

    arms: tuple[Arm, ...]
    trials: tuple[Trial, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def of(self, variant: str) -> tuple[Trial, ...]:
        """The trials of one variant, whatever their outcome."""
        return tuple(t for t in self.trials if t.variant == variant)

    @functools.cached_property
    def timings(self) -> tuple[Timing, ...]:
        """A rate with its interval for each variant that completed a trial."""
        raise NotImplementedError

    def timing(self, variant: str) -> Timing | None:
        """One variant's rate; None while it has no completed trial."""
        return next((t for t in self.timings if t.variant == variant), None)

    @functools.cached_property
    def noise_floor(self) -> float | None:
        """The ratio that the baseline and its twin reached, at most; None if unknown."""
        raise NotImplementedError

    @functools.cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each variant against the one it is compared with."""
        raise NotImplementedError

    def compare(self, variant: str, baseline: str) -> Comparison | None:
        """Any two variants, from the rounds that hold both; None if there are none."""
        raise NotImplementedError

    def fastest(self, among: tuple[str, ...] = ()) -> tuple[Timing, ...]:
        """The fastest variant, then those it is not shown to beat; best rate first.

        Args:
            among: Only these variants; empty for all.
        """
        raise NotImplementedError
