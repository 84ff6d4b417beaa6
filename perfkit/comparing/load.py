"""What of a step was lost to other programs, and to a machine that slowed down.

Both are read from the samples, which tell the whole measurement and not one job. So
each is a share that holds for all jobs alike, and the doubt in it is large.
"""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.comparing.works import Held
    from perfkit.machine.record import Machine

    Columns = dict[str, tuple[float | None, ...]]

# Fewer samples than this say nothing.
_ENOUGH = 5
# Cores that others keep busy, as a share of those granted; less is always there.
_LEAST = 0.05
# Into so many a run is cut to see whether the machine slowed down.
_STRETCHES = 10
# The pulse of a healthy machine falls so far below its best, at most.
_STEADY = 0.85
# Nothing is lost beyond this: what is left has to have done the work.
_MOST = 0.95


@dataclass(frozen=True)
class Lost:
    """Shares of a step that were lost, from 0 to 1, and where that is known from.

    Attributes:
        load: To other programs; None if unknown.
        throttling: To slower clocks of the cores, None if unknown; ``gpu`` to those of
            the GPU.
        others: Cores that other programs kept busy.
        pulse: The speed of the cores, as a share of their best; None if unknown.
        reasons: Why the GPU was slowed.
    """

    load: float | None = None
    throttling: float | None = None
    gpu: float = 0.0
    others: float = 0.0
    pulse: float | None = None
    reasons: tuple[str, ...] = ()


def losses(a: Held, b: Held) -> tuple[Lost, Lost]:
    """What each of the two lost; what one of them does not tell is told of neither."""
    one, other = lost(a, b), lost(b, a)
    if one.load is None or other.load is None:
        one, other = replace(one, load=None), replace(other, load=None)
    if one.throttling is None or other.throttling is None:
        one, other = replace(one, throttling=None), replace(other, throttling=None)
    return one, other


def lost(held: Held, other: Held) -> Lost:
    """What one machine lost; the other shows how many cores the same jobs can fill."""
    pulse = _pulse(held.samples)
    slowed = None if pulse is None else (1 - pulse if pulse < _STEADY else 0.0)
    taken = _taken(held, other)
    gpu, reasons = _gpu(held.machine, held.samples)
    others = _mean(held.samples, "cpu_other") or 0.0
    return Lost(
        load=None if taken is None else min(_MOST, taken),
        throttling=slowed,
        gpu=gpu,
        others=others,
        pulse=pulse,
        reasons=reasons,
    )


def _taken(held: Held, other: Held) -> float | None:
    """The share of the step that other programs took; None if unknown."""
    machine = held.machine
    used, others = (_mean(held.samples, name) for name in ("cpu_trial", "cpu_other"))
    if not used or others is None:
        return None
    free = max(0.0, machine.cores - others)
    gone = machine.cores_granted - min(machine.cores_granted, free)
    wanted = min(machine.cores_granted, max(used, _filled(other)))
    # Cores that stood idle all the same would have done what others kept from it.
    idle = max(0.0, machine.cores_granted - gone - used)
    missed = min(gone, wanted - used) - idle
    if gone < _LEAST * machine.cores_granted or missed <= 0:
        return 0.0
    return missed / (used + missed)


def _filled(held: Held) -> float:
    return _mean(held.samples, "cpu_trial") or 0.0


def _pulse(samples: Columns) -> float | None:
    """The usual speed of the cores as a share of the best that was seen.

    A core that shares its arithmetic with another is slower whenever that one works,
    and so are clocks when all cores do: the training itself moves the pulse. In every
    stretch of a run the other core rests at times. What keeps even the best moments of
    most stretches below those of others is the machine.
    """
    known = [v for v in samples.get("pulse", ()) if v is not None and v > 0]
    count = min(_STRETCHES, len(known) // _ENOUGH)
    if count < 2:
        return None
    edges = [number * len(known) // count for number in range(count + 1)]
    stretches = [sorted(known[a:b]) for a, b in itertools.pairwise(edges)]
    best = [stretch[int(0.9 * (len(stretch) - 1))] for stretch in stretches]
    return statistics.median(best) / max(best)


def _gpu(machine: Machine, samples: Columns) -> tuple[float, tuple[str, ...]]:
    """How far the first GPU's clock lay below its highest while it worked, and why."""
    if not machine.gpus:
        return 0.0, ()
    clocks = machine.gpus[0].clocks
    columns = (samples.get(f"gpu0_{name}", ()) for name in ("sm_clock", "busy"))
    # An idle GPU lets its clock fall of its own accord.
    seen = [clock for clock, busy in zip(*columns, strict=False) if clock and busy]
    if not clocks.busy_throttle or not clocks.sm_max or len(seen) < _ENOUGH:
        return 0.0, ()
    usual = statistics.median(seen) / clocks.sm_max
    return min(_MOST, max(0.0, 1 - usual)), tuple(clocks.busy_throttle)


def _mean(samples: Columns, name: str) -> float | None:
    known = [value for value in samples.get(name, ()) if value is not None]
    return statistics.fmean(known) if len(known) >= _ENOUGH else None
