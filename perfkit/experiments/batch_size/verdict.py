"""What a run over batch sizes means, in one sentence.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.batch_size import facts, numbers, search
from perfkit.experiments.shared.words import interval, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from perfkit.experiments.batch_size.facts import Asked
    from perfkit.experiments.batch_size.numbers import Knee
    from perfkit.measure.measurement import Measurement


def judge(measured: Measurement, asked: Asked) -> Verdict:
    """Say which batch is large enough, what a step costs, and how large one may be.

    Args:
        measured: The run.
        asked: What was asked.
    """
    knee = numbers.knee(measured)
    if knee is None:
        return Verdict(
            headline="No batch size could be timed.",
            because=tuple(facts.failures(measured)),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    said = [_knee(measured, knee), _overhead(measured), _largest(measured, asked)]
    best = measured.compare(numbers.name_of(knee.best), measured.baseline)
    won = best is not None and best.verdict == "faster"
    return Verdict(
        headline="; ".join(filter(None, said)) + ".",
        because=tuple(facts.because(measured, asked)),
        next=_next(knee, won=won),
        winner=numbers.name_of(knee.best) if won and knee.alone else "",
    )


def _knee(measured: Measurement, knee: Knee) -> str:
    smallest = knee.sizes[0]
    if not knee.firm:
        return _unclear(knee)
    if knee.size == smallest:
        return f"No batch size is shown to be faster than {smallest:,} here"
    gain = _gain(measured, knee.size)
    if knee.size == knee.sizes[-1]:
        return (
            f"The rate still rises at the largest batch, {knee.size:,} examples{gain}"
        )
    return (
        f"{knee.size:,} examples a batch are enough here{gain}, and no size that was "
        "tried is shown to be faster"
    )


def _unclear(knee: Knee) -> str:
    compared, smallest = knee.against_best, knee.sizes[0]
    known = compared is not None and units.is_known(compared.low, compared.high)
    most = units.ratio(compared.high) if compared and known else f"{units.UNKNOWN}×"
    left = f"{knee.best:,} may be up to {most} as fast as {knee.size:,}"
    if knee.size == smallest:
        return f"Too noisy to say whether any size is faster than {smallest:,}: {left}"
    return (
        f"Too noisy to say where the rate stops rising: every size below {knee.size:,} "
        f"is slower, and {left}"
    )


def _gain(measured: Measurement, size: int) -> str:
    timing = measured.timing(numbers.name_of(size))
    compared = measured.compare(numbers.name_of(size), measured.baseline)
    if timing is None or compared is None:
        return ""
    return (
        f" ({units.rate(timing.rate)}, {ratio(compared)} "
        f'"{compared.baseline}", {interval(compared)})'
    )


def _overhead(measured: Measurement) -> str:
    line = numbers.line(numbers.step_times(measured.timings), measured.noise_floor)
    if line is None or line.bends:
        return ""
    if not line.shows_overhead:
        return "no overhead of a step is shown"
    cost = line.overhead
    spent = units.between(cost.value, cost.low, cost.high, units.seconds)
    return f"before its first example each step costs {spent}"


def _largest(measured: Measurement, asked: Asked) -> str:
    found = search.found(measured.trials)
    if found is None or (found.fails and not found.by_limit):
        return ""
    room = facts.room(measured, asked)
    if found.fails is None:
        return f"{found.fits:,} fit into {room}, and no larger batch was tried"
    if not found.fits:
        return f"not even {found.fails:,} fit into {room}"
    if found.closed:
        return f"the largest batch that fits into {room} is {found.fits:,}"
    return f"{found.fits:,} fit into {room} and {found.fails:,} do not"


def _next(knee: Knee, *, won: bool) -> str:
    if not knee.firm:
        return "End what else runs on this machine, or give the run more seconds."
    if not won:
        return "Choose the batch size that learns best: speed does not decide it here."
    if knee.size == knee.sizes[-1]:
        return f"Ask again with a `largest` above {knee.size:,}."
    return (
        f"Train with `batch_size={knee.size}`, and look whether it still learns as "
        "well: an epoch has fewer steps then."
    )
