"""What a run beside known loads means, and who may be guilty."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.errors import BadParameterError
from perfkit.experiments.contention import signs
from perfkit.experiments.contention.loads import CPU, DISK, GPU, MEMORY
from perfkit.experiments.contention.signs import (
    DECODING,
    MYSTERY,
    PIPELINES,
    QUIET,
    SLEEPING,
    sealed,
)
from perfkit.experiments.shared.words import (
    failures,
    listed,
    longer,
    noise,
    quoted,
    rounds,
)
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perfkit.experiments.contention.signs import Change, Samples, Sign
    from perfkit.findings.record import Finding
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison
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


@dataclass(frozen=True)
class Opened:
    """An opened mystery.

    Attributes:
        slowdown: What it was, by the name of its arm.
        because: What moved in the counters and the steps, a sentence each.
        suspects: What fits those: one, several that cannot be told apart, or none.
    """

    slowdown: str
    because: tuple[str, ...]
    suspects: tuple[str, ...]

    def __str__(self) -> str:
        """It was this, and that is how one could tell."""
        return "\n".join([f'It was "{self.slowdown}".', *self.because, *self._judged()])

    def _judged(self) -> Iterator[str]:
        if not self.suspects:
            yield "In this run no counter moved far enough to point to anything."
        elif len(self.suspects) > 1:
            yield (
                f"By these it may be {listed(self.suspects)}: which one cannot be told "
                "from this run. A quieter machine or more seconds may decide it."
            )
        elif self.slowdown not in self.suspects:
            yield (
                f"In this run these point to {listed(self.suspects)}, and that is "
                "wrong. Something else came by: run it again on a quieter machine."
            )


def opened(finding: Finding) -> Opened:
    """Tell what the mystery of a finding was.

    The number of the mystery decides it, so it is worked out anew and was nowhere
    written down.

    Raises:
        BadParameterError: The finding holds no mystery.
    """
    number = finding.parameters.get("mystery")
    if finding.experiment != "contention" or not isinstance(number, int) or not number:
        raise BadParameterError(
            "This finding holds no mystery; run one with "
            '`perfkit.run("contention", mystery=7)`, or with any other number.'
        )
    fed = str(finding.parameters.get("fed"))
    found = signs.moved(finding.trials, finding.samples, MYSTERY)
    return Opened(
        slowdown=sealed(number, fed),
        because=tuple(f"{_upper(str(one))}." for one in found.values()),
        suspects=suspects(finding.trials, finding.samples, MYSTERY, fed),
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


_SLOW = (
    "Where a training waits for input like this, and no other program takes the cores, "
    "its pipeline is slow: ask `perfkit run data-pipeline`."
)
_REMEDIES = {
    CPU: "Where a training shows these signs, see in `top` who takes the cores and end "
    f"it: that is what {quoted(QUIET)} measured. `nice -n 19 COMMAND`, or a core of "
    "its own with `taskset -c 0 COMMAND`, may help too and was not measured.",
    MEMORY: "Where a training shows these signs, see in `top` who computes, and run it "
    "afterwards. `nice` frees cores, but not the way to memory that they share.",
    DISK: "Where a training shows these signs, see in `iotop` who reads, and run it "
    "afterwards. If your training reads from that disk, `dataset.cache()` may help too "
    "and was not measured.",
    GPU: "Where a training shows these signs, see in `nvidia-smi` who uses the GPU, "
    "and end it or take another one with `CUDA_VISIBLE_DEVICES`.",
    SLEEPING: f"{_SLOW} It leaves the cores alone, so it waits for something: a disk, "
    "a network, a lock.",
    DECODING: f"{_SLOW} The CPU time of a step grew with it, so it computes, as "
    "decoding does.",
}
_WHO = {
    SLEEPING: "neither the training nor others use more cores than before",
    DECODING: "the training itself uses the cores",
}
_OF_LOADS = (signs.READ, signs.BUSY, signs.OTHERS)
# Other programs that take this many cores are no quiet.
_BUSY_CORES = 0.3
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement) -> Verdict:
    """Say which load costs most and by what it can be told, or that none is shown."""
    compared = [c for c in measured.comparisons if c.baseline == QUIET]
    if any(c.variant == MYSTERY for c in compared):
        return _of_mystery(measured, compared[0])
    because = (
        *noise(measured),
        *_not_quiet(measured),
        *_each(measured, compared),
        *failures(measured),
    )
    slower = [c for c in compared if c.verdict == "slower"]
    if not slower:
        return _of_none(compared, because)
    worst = min(slower, key=lambda c: c.ratio)
    shown = "".join(f"; {sign}" for sign in _moved(measured, worst.variant)[:1])
    return Verdict(
        headline=(
            f"{quoted(worst.variant)} costs this training most"
            f"{_tied(measured, worst, compared)}: a step takes {_longer(worst)}{shown}."
        ),
        because=because,
        next=_REMEDIES[worst.variant],
    )


def _tied(measured: Measurement, worst: Comparison, compared: list[Comparison]) -> str:
    """Name those that are not shown to cost less than the dearest."""
    ties = [
        other.variant
        for other in compared
        if other is not worst
        and (
            (against := measured.compare(worst.variant, other.variant)) is None
            or against.verdict != "slower"
        )
    ]
    return f", and {listed(ties)} may cost as much" if ties else ""


def _of_none(compared: list[Comparison], because: tuple[str, ...]) -> Verdict:
    if not compared:
        return Verdict(
            headline="Too little was measured to say anything.",
            because=because,
            next=_QUIETER,
        )
    noisy = [c.variant for c in compared if c.verdict == "too noisy to say"]
    doubt = f"; of {listed(noisy)} it is too noisy to say" if noisy else ""
    return Verdict(
        headline=f"Nothing is shown to slow this training down{doubt}.",
        because=because,
        next=_QUIETER
        if noisy
        else "Leave them as they are: each costs this training less than 10 %.",
    )


def _of_mystery(measured: Measurement, compared: Comparison) -> Verdict:
    """The length of a step and nothing else: the rest is for the reader to see."""
    because = (*noise(measured), *_not_quiet(measured), *failures(measured))
    if compared.verdict == "slower":
        headline = f"Something slows this training: a step takes {_longer(compared)}."
        following = (
            "Name it from the charts, then open it: "
            "`perfkit.experiments.contention.opened(finding)`."
        )
    else:
        headline = (
            f"The mystery: {compared.judgement}; a step takes {_longer(compared)}."
        )
        following = _QUIETER
    return Verdict(headline=headline, because=because, next=following)


def _not_quiet(measured: Measurement) -> Iterator[str]:
    read = signs.values(measured.trials, measured.samples, QUIET)
    others = read.get(signs.OTHERS)
    if others and (mean := statistics.fmean(others.values())) >= _BUSY_CORES:
        yield (
            f"Beside {quoted(QUIET)}, too, other programs kept "
            f"{signs.OTHERS.write(mean)} busy: on a free machine a load would show "
            "more clearly."
        )


def _each(measured: Measurement, compared: list[Comparison]) -> Iterator[str]:
    """What each load costs and what it shows, dearest first."""
    for one in sorted(compared, key=lambda c: c.ratio):
        shown = _moved(measured, one.variant)
        said = "; ".join(map(str, shown)) or "no counter moved with it in every round"
        yield (
            f"With {quoted(one.variant)} a step takes {_longer(one)}: {one.judgement}. "
            f"Its signs: {said}."
        )
    yield from _apart(measured, compared)


def _apart(measured: Measurement, compared: list[Comparison]) -> Iterator[str]:
    """How a slow pipeline is told from a busy machine, where this run shows it."""
    slower = {c.variant for c in compared if c.verdict == "slower"}
    for name in PIPELINES:
        fits = suspects(measured.trials, measured.samples, name)
        if name in slower and fits == (name,):
            yield (
                f"{quoted(name)} is told from a busy machine: a step waits for input, "
                f"and in the time that is added to it {_WHO[name]}."
            )


def _moved(measured: Measurement, variant: str) -> list[signs.Change]:
    """The signs of a variant, the one that points to something first."""
    shown = signs.moved(measured.trials, measured.samples, variant)
    # Others' cores may grow beside a training that waits, and waiting beside others.
    first = (signs.WAITING, signs.CPU_TIME) if variant in PIPELINES else _OF_LOADS
    order = [sign for sign in (*first, *signs.SIGNS) if sign in shown]
    return [shown[sign] for sign in dict.fromkeys(order)]


def _longer(compared: Comparison) -> str:
    """The time of a step as a multiple of the quiet one, with its interval."""
    times, sure = longer(compared)
    return f"{times} times as long as when quiet ({sure}, {rounds(compared)})"
