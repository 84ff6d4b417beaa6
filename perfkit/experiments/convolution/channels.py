"""Channel counts around the one that is asked for: does conv2d like some of them more?

All do different amounts of work, so that what is compared is arithmetic per second.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.convolution import trying, working
from perfkit.experiments.convolution.numbers import at_equal_work, widened
from perfkit.experiments.convolution.ways import BASELINE, WAYS
from perfkit.experiments.shared.words import interval, ratio
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Arm
from perfkit.measure.tick import REFUSED, Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.convolution.problem import Problem
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison
    from perfkit.measure.tick import Yielded

# One fewer, as asked, one more, and the next count with the same remainder of 8.
_AROUND = (0, -1, 1, 8)
_NAMED = 3


def baseline(problem: Problem) -> str:
    """The name of the arm with the counts that were asked for."""
    return _name(problem)


def arms(problem: Problem) -> dict[str, Arm]:
    """One arm for each pair of counts, the one that was asked for first."""
    return {
        name: Arm(
            name,
            functools.partial(working.convolving, WAYS[BASELINE], one),
            f"{one.channels} channels in, {one.filters} out.",
            baseline(problem),
        )
        for name, one in _problems(problem).items()
    }


def prepare(problem: Problem) -> Iterator[Yielded]:
    """Check the answer at every pair of counts, on one image of the batch."""
    channels, refused = {}, {}
    for name, one in _problems(problem).items():
        yield Note("progress", f"Checking the answer with {name}")
        image = dataclasses.replace(one, batch=1)
        if why := trying.tried(WAYS[BASELINE], image, math.inf).why_not:
            refused[name] = why
        channels[name] = {"in": one.channels, "out": one.filters, "flops": one.flops}
    yield Note("channels", channels)
    yield Note(REFUSED, refused)


def judge(measured: Measurement, problem: Problem) -> Verdict:
    """Say which counts run at another speed, at equal work, than the one asked for."""
    base = baseline(problem)
    timed = measured.timing(base)
    found = _at_equal_work(measured, problem)
    if timed is None or not found:
        return Verdict(headline="No two channel counts could be compared.")
    shown = sorted((c for c in found if not c.is_noise), key=lambda c: c.ratio)
    speed = units.significant(timed.rate * problem.flops / 1e9)
    return Verdict(
        headline=_headline(base, found, shown),
        because=(
            f"{base}: {speed} GFLOP/s. All ratios are of arithmetic per second, since "
            "other counts are other amounts of work, and their intervals are wide "
            f"enough for all {len(found)} to hold at once.",
            *(f"{_sentence(c)}." for c in shown),
        ),
        next=_next(problem, found, shown),
    )


def _headline(base: str, found: list[Comparison], shown: list[Comparison]) -> str:
    slower = [c for c in shown if c.verdict == "slower"]
    faster = [c for c in reversed(shown) if c.verdict == "faster"]
    worst = slower or faster
    if worst:
        others = f", and {len(shown) - 1} more counts differ" if shown[1:] else ""
        return f"Channel counts matter here: {_sentence(worst[0])}{others}."
    if all(c.verdict == "no difference shown" for c in found):
        return f"No channel count is shown to run at another speed than {base}."
    return f"Too noisy to say whether any channel count differs from {base}."


def _next(problem: Problem, found: list[Comparison], shown: list[Comparison]) -> str:
    better = [c for c in shown if c.verdict == "faster"]
    if better:
        return f"Try {better[-1].variant}: it does more arithmetic in the same time."
    if shown:
        slow = ", ".join(c.variant for c in shown[:_NAMED])
        return f"Keep {baseline(problem)}, and avoid {slow}."
    if any(c.verdict == "too noisy to say" for c in found):
        return "End what else runs on this machine, or give the run more seconds."
    return "Choose channel counts for what they learn, not for their speed."


def _sentence(compared: Comparison) -> str:
    return (
        f"{compared.variant} runs at {ratio(compared)} the speed of "
        f"{compared.baseline} ({interval(compared)})"
    )


def _at_equal_work(measured: Measurement, problem: Problem) -> list[Comparison]:
    known = {
        name: compared
        for name in _problems(problem)
        if name != baseline(problem)
        and (compared := measured.compare(name, baseline(problem)))
    }
    work = {name: one.flops / problem.flops for name, one in _problems(problem).items()}
    return [
        at_equal_work(
            # Of many counts one differs by chance; this asks more of each of them.
            widened(compared, len(known)),
            work[name],
            measured.noise_floor or 1.0,
        )
        for name, compared in known.items()
    ]


def _problems(problem: Problem) -> dict[str, Problem]:
    pairs = [
        (problem.channels + more, problem.filters + others)
        for more in _AROUND
        for others in _AROUND
    ]
    made = (
        dataclasses.replace(problem, channels=channels, filters=filters)
        for channels, filters in pairs
        if channels and filters
    )
    return {_name(one): one for one in made}


def _name(problem: Problem) -> str:
    return f"{problem.channels} in, {problem.filters} out"
