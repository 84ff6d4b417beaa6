"""Which slow-downs fit what the counters show? One is named only where one fits.

A training that waits for its input may have a slow pipeline, or a good one that other
programs starve. What tells them apart is who used the cores in the time by which a step
is longer than when quiet: other programs, the training itself, or nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.experiments.contention import signs
from perfkit.experiments.contention.loads import CPU, DISK, GPU, MEMORY
from perfkit.experiments.contention.mystery import DECODING, PIPELINES, SLEEPING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfkit.experiments.contention.seen import Samples
    from perfkit.experiments.contention.signs import Change, Sign
    from perfkit.measure.trial import Trial

    Changes = Mapping[Sign, Change]

# In the added time a training that sleeps uses less than this share of the cores that
# it uses when quiet, one that computes more than the other.
_ASLEEP, _AT_WORK = 0.3, 0.5
# Cores, and the share of those in question, that no sample tells for sure.
_LITTLE, _UNSURE = 0.25, 0.15
# A process that computes and holds nothing else holds less for each core it gets.
_HELD_PER_CORE = 20e6


@dataclass(frozen=True)
class Added:
    """Who used the cores in the time by which a step is longer than when quiet.

    Attributes:
        quiet: Cores that the training uses when quiet.
        own: Cores that it used in that time, as a share of those.
        others: Cores that other programs took in it, beyond those they take anyway.
    """

    quiet: float
    own: float
    others: float

    @property
    def _left(self) -> float:
        """Cores that it uses when quiet and left to whoever wants them."""
        return self.quiet * (1 - self.own)

    @property
    def _doubt(self) -> float:
        return max(_LITTLE, _UNSURE * self._left)

    def others_came(self) -> bool:
        """Whether others took more than what a training that waits leaves to them."""
        return self.own <= 1 and self.others > self._left + self._doubt

    def others_filled(self) -> bool:
        """Whether a training that waits left them about as much as they took."""
        return self.own < _AT_WORK and self.others > self._left - self._doubt

    def others_stayed(self) -> bool:
        """Whether they took next to nothing more, or little beside the training."""
        return self.others <= max(_LITTLE, self.quiet * self.own / 2)

    def pipelines(self) -> tuple[str, ...]:
        """The slow pipelines that fit what the training itself used."""
        if self.own <= _ASLEEP:
            return (SLEEPING,)
        return (DECODING,) if self.own >= _AT_WORK else PIPELINES


def suspects(
    trials: Sequence[Trial], samples: Samples, variant: str, fed: str = "memory"
) -> tuple[str, ...]:
    """Name the slow-downs that fit: one, several that cannot be told apart, or none.

    Args:
        trials: Of the run.
        samples: Taken meanwhile.
        variant: Which of its variants is slowed.
        fed: Where the training gets its batches.
    """
    found = signs.moved(trials, samples, variant)
    compared = signs.changes(trials, samples, variant)
    if signs.BUSY in found:
        return (GPU,)
    if signs.READ in found:
        return (DISK,)
    fits = _of_the_cores(found, compared)
    untold = fed == "disk" and signs.READ not in compared
    return (*fits, DISK) if fits and untold else fits


def _of_the_cores(found: Changes, compared: Changes) -> tuple[str, ...]:
    busy = _busy(found, compared)
    if signs.WAITING not in found:
        return busy if signs.OTHERS in found else ()
    added = _added(compared)
    if added is None:
        return (*busy, *PIPELINES)
    # A pipeline that sleeps leaves the rest of a step as it was.
    starved = added.others_filled() and signs.REST in found
    if signs.OTHERS in found and (added.others_came() or starved):
        return busy
    if added.others_stayed():
        return added.pipelines()
    return (*busy, *added.pipelines())


def _busy(found: Changes, compared: Changes) -> tuple[str, ...]:
    """What others do if they took cores: their memory tells copies from burners.

    The training's own CPU time does not: it grows beside copies, and also beside
    burners where two hardware threads share a core.
    """
    if signs.HELD not in found:
        untold = signs.HELD not in compared
        return (CPU, MEMORY) if untold or signs.CPU_TIME in found else (CPU,)
    others = compared.get(signs.OTHERS)
    cores = others.after - others.before if others else 0.0
    held = found[signs.HELD].after - found[signs.HELD].before
    return (MEMORY,) if held > _HELD_PER_CORE * cores else (CPU, MEMORY)


def _added(compared: Changes) -> Added | None:
    """Work it out from means; None where a step is not longer, or no counter tells."""
    if not {signs.STEP, signs.CPU_TIME, signs.OTHERS} <= compared.keys():
        return None
    step, own, others = (
        compared[sign] for sign in (signs.STEP, signs.CPU_TIME, signs.OTHERS)
    )
    if signs.STEP.grew(step.before, step.after) < 1 or own.before <= 0:
        return None
    longer = step.after - step.before
    return Added(
        quiet=own.before / step.before,
        own=(own.after / own.before - 1) / (step.after / step.before - 1),
        others=(others.after - others.before) * step.after / longer,
    )
