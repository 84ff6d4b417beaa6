"""Two machines compared: what sets them apart, and what to do about it."""

import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfkit import documents, units
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.account import Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.machine.checks import checks
from perfkit.machine.record import Machine
from perfkit.machines import comparison_report, ratios
from perfkit.machines.comparison import (
    ALL_PARTS_AND_REST,
    LOAD,
    THROTTLING,
    Advice,
    Change,
    Document,
    Explained,
    Explanation,
    Held,
    Predicted,
    Work,
    held,
)
from perfkit.machines.prediction import (
    DECODE,
    MAP,
    Drawn,
    Draws,
    Expected,
    drawn,
    ends,
    expected,
    without_losses,
)
from perfkit.machines.prediction import DISK as DISK_READ
from perfkit.machines.ratios import (
    CORES,
    DISK,
    GPU,
    KERNELS,
    LINK,
    PYTHON,
    SPEED,
    THREADS,
    BenchmarkRatio,
    MachineDiffers,
    Ratio,
    Side,
    other_software,
    same_job,
    same_work,
)
from perfkit.machines.sides import Lost, differences, losses
from perfkit.measure.statistics import WORTH_KNOWING
from perfkit.passports.passport import PARTS, Passport

Ratios = Mapping[str, BenchmarkRatio]
Log = tuple[float, float] | None

_KINDS = (Passport, Finding, Diagnosis)


def compare(
    a: Document | str | Path,
    b: Document | str | Path,
    *,
    guess: str = "",
) -> Explanation:
    """Say why the same training runs differently on two machines.

    Args:
        a: A passport of the one, or its file. Two findings of one experiment, or two
            diagnoses of one training, are held against each other as well; without
            the microbenchmarks of a passport they show less.
        b: The same of the other.
        guess: What you expect; it stands in the chart and the report.

    Raises:
        BadFileError: A file is none of these, or not one that this perfkit can read.
        BadParameterError: The two are of different kinds.
    """
    one, other = _read(a), _read(b)
    if type(one) is not type(other):
        raise BadParameterError(
            f"A is a {one.kind} and B a {other.kind}; give two of a kind, best two "
            "passports: `perfkit passport -o NAME.json` on each machine."
        )
    return replace(_compared(held(one), held(other)), guess=guess)


def _compared(a: Held, b: Held) -> Explanation:
    job = same_job(a, b)
    differ = differences(a.machine, b.machine)
    if job:
        return Explanation(
            a=a.one,
            b=b.one,
            verdict="not the same job",
            headline=comparison_report.headline("not the same job", job=job),
            job=job,
            differences=differ,
        )
    benchmarks = ratios.microbenchmarks(a, b)
    works = _explained(a, b, differ, benchmarks)
    verdict = comparison_report.verdict(works)
    return Explanation(
        a=a.one,
        b=b.one,
        verdict=verdict,
        headline=comparison_report.headline(verdict, works, benchmarks=benchmarks),
        because=tuple(comparison_report.because(works, other_software(a, b))),
        differences=differ,
        microbenchmarks=benchmarks,
        works=works,
        advice=_advice(a, b, works),
        next=tuple(comparison_report.following(works)),
    )


def _read(source: Document | str | Path) -> Document:
    if isinstance(source, _KINDS):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 60)} is nothing to compare; give the file of a "
            "passport, of a finding or of a diagnosis."
        )
    path = Path(os.path.expanduser(source))
    return parse(store.whole_file(path), plain(path.name))


def parse(data: bytes, name: str) -> Document:
    """Read a passport, a finding or a diagnosis from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    found = documents.parse(data, name)
    if isinstance(found, Profile | Account):
        kind = "an account" if isinstance(found, Account) else "a profile"
        raise BadFileError(
            f"{name} is {kind}, which explains one training; give the file of a "
            "passport, of a finding or of a diagnosis."
        )
    return found


# Work of all cores, and the same on one: what only the number of cores changes.
_TOGETHER = (DECODE, "NumPy product, float32", "TensorFlow product, float32")
_ALONE = ("JPEG decode, 1 core", "NumPy product, 1 core", "TensorFlow product, 1 core")
# Work of one core in which no library of TensorFlow's has a part.
_ONE_CORE = ("Python loop", "NumPy product, 1 core", "JPEG decode, 1 core")
_KERNELS = (
    *("TensorFlow product, 1 core", "TensorFlow product, float32"),
    "convolution, float32",
)
_NUMPY = ("NumPy product, 1 core", "NumPy product, float32")
_GPUS = ("GPU product, float32", "GPU product, TF32", "GPU product, float16")
# What else the input may wait for, where what stands for it does not show it.
_BESIDE = {"input": (DISK_READ, MAP, DECODE)}
_MOST = 4
_WORTH = math.log(WORTH_KNOWING)
# One that is surely not this much slower stands behind nothing that is claimed.
_REFUTED = math.log(1.2)


@dataclass(frozen=True)
class _Pair:
    """Two machines, and what may stand behind a difference between them."""

    a: Held
    b: Held
    differences: tuple[MachineDiffers, ...]
    rates: Ratios
    losses: tuple[Lost, Lost]

    def behind(self, change: Change, slower: Side) -> str:
        """What stands behind a change, in a clause; "" where nothing is to be said."""
        at = slower != "A"
        if change.name == LOAD:
            return _loaded(slower, self.losses[at], (self.a, self.b)[at].machine)
        if change.name == THROTTLING:
            return _throttled(slower, self.losses[at])
        shown = _slower(change, slower, self.rates)
        found = _plausible(change.name, slower, self.differences, self.rates)
        topics = {one.topic for one in found}
        seen = f" ({_rates_of(shown[0])})" if shown else ""
        if len(topics) == 1:
            one = found[0]
            return f"{one.what}: {one.b} on B, {one.a} on A"
        if not topics:
            no = "why is not recorded"
            if shown:
                return f"{_rates_of(shown[0])}; {no}"
            return f"{no}, and no microbenchmark shows it"
        names = ", ".join(dict.fromkeys(one.what for one in found[:_MOST]))
        return f"it is not known which of these stands behind it: {names}{seen}"


def _plausible(
    part: str, slower: Side, differences: Iterable[MachineDiffers], rates: Ratios
) -> list[MachineDiffers]:
    able = [d for d in differences if part in d.parts and d.slower in ("", slower)]
    told = [(d, _shown(d.sign, slower, rates)) for d in able]
    return (
        [d for d, shown in told if shown]
        or [d for d, shown in told if shown is None and d.slower]
        or [d for d, shown in told if shown is None]
    )


def _shown(sign: str, slower: Side, rates: Ratios) -> bool | None:
    """Whether microbenchmarks show what a difference would do; None if left open."""
    found = _SIGNS[sign](slower, rates) if sign in _SIGNS else None
    if found is None:
        return None
    longer, half = found
    if longer > max(_WORTH, half):
        return True
    return False if longer + half < _REFUTED else None


def _lost_together(
    every: Iterable[str], one: Iterable[str], slower: Side, rates: Ratios
) -> Log:
    """How much more is lost on all cores than on one, the mean over pairs of them."""
    pairs = zip(every, one, strict=True)
    found = [_more_lost((first,), (second,), slower, rates) for first, second in pairs]
    return _mean([pair for pair in found if pair])


def _more_lost(
    names: Iterable[str], than: Iterable[str], slower: Side, rates: Ratios
) -> Log:
    """How much more some microbenchmarks lose than others."""
    one, other = _lost(names, slower, rates), _lost(than, slower, rates)
    if one is None or other is None:
        return None
    return one[0] - other[0], math.hypot(one[1], other[1])


def _lost(names: Iterable[str], slower: Side, rates: Ratios) -> Log:
    """How much longer one machine takes, the mean over these; None if unknown."""
    found = (rates[name].speed for name in names if name in rates)
    return _mean([_log(speed, slower) for speed in found if speed])


# By the sign of a difference: how much longer those take that would show it.
_SIGNS: dict[str, Callable[[Side, Ratios], Log]] = {
    CORES: functools.partial(_lost_together, _TOGETHER, _ALONE),
    # The same, where TensorFlow's own threads do it.
    THREADS: functools.partial(_lost_together, _TOGETHER[2:], _ALONE[2:]),
    SPEED: functools.partial(_lost, _ONE_CORE),
    # How much more TensorFlow's kernels lose than NumPy's.
    KERNELS: functools.partial(_more_lost, _KERNELS, _NUMPY),
    PYTHON: functools.partial(_lost, ("Python loop",)),
    DISK: functools.partial(_lost, (DISK_READ,)),
    GPU: functools.partial(_lost, _GPUS),
    LINK: functools.partial(_lost, ("to the GPU, pinned", "to the GPU")),
}


def _mean(logs: Sequence[tuple[float, float]]) -> Log:
    if not logs:
        return None
    middle = math.fsum(log for log, _ in logs) / len(logs)
    return middle, math.hypot(*(half for _, half in logs)) / len(logs)


def _log(speed: Ratio, slower: Side) -> tuple[float, float]:
    """Logarithm of how many times as long one machine takes, and half its interval."""
    longer = math.log(speed.ratio) * (1 if slower == "A" else -1)
    return longer, math.log(speed.high / speed.low) / 2


def _slower(change: Change, slower: Side, rates: Ratios) -> list[BenchmarkRatio]:
    """Those that stand for a part, or bear on it, and are slower; the slowest first."""
    names = dict.fromkeys((*change.microbenchmarks, *_BESIDE.get(change.name, ())))
    found = [rates[name] for name in names if name in rates]
    said = "faster" if slower == "A" else "slower"
    slow = [
        (_log(one.speed, slower)[0], one)
        for one in found
        if one.speed is not None and one.speed.verdict == said
    ]
    slow.sort(key=lambda told: -told[0])
    return [one for longer, one in slow if longer > _WORTH]


def _rates_of(one: BenchmarkRatio) -> str:
    rates = (units.rate(value or 0.0, one.unit) for value in (one.b, one.a))
    return f"{one.name}: {units.instead(*rates)}"


def _loaded(slower: Side, lost: Lost, machine: Machine) -> str:
    top = ", ".join(one.program for one in machine.load.top[:3]) if machine.load else ""
    busy, cores = units.significant(lost.others, 2), units.significant(machine.cores)
    named = f" ({plain(top)})" if top else ""
    return f"other programs kept {busy} of {cores} cores busy on {slower}{named}"


def _throttled(slower: Side, lost: Lost) -> str:
    if lost.reasons:
        return f"the GPU of {slower} was slowed: {plain(', '.join(lost.reasons))}"
    core_speed = units.percent(lost.core_speed or 0.0)
    return f"the cores of {slower} ran at {core_speed} of their best"


# Topics and signs of differences that only trainings on a GPU meet.
_GPU_TOPICS = {GPU, LINK, "driver"}
# Noise may let a part seem longer than its step, and no more than so many times.
_MOST_OF_STEP = 100.0


def _explained(
    a: Held,
    b: Held,
    differences: tuple[MachineDiffers, ...],
    benchmarks: tuple[BenchmarkRatio, ...],
) -> tuple[Explained, ...]:
    """Each job that one of the two has, in A's order."""
    opened = [_opened(a, b, name) for name in dict.fromkeys((*a.works, *b.works))]
    looks = sum(not work.missing for work in opened)
    known = {one.name: one for one in benchmarks}
    pair = _Pair(a, b, differences, known, losses(a, b))
    return tuple(
        work if work.missing else _with_speed(work, pair, looks) for work in opened
    )


def _with_speed(work: Explained, pair: _Pair, looks: int) -> Explained:
    """A job with its speed, and with its step taken apart."""
    one, other = pair.a.works[work.name], pair.b.works[work.name]
    floors = pair.a.floor, pair.b.floor
    shared = math.hypot(pair.a.drift, pair.b.drift)
    trials = min(one.trials, other.trials)
    speed = ratios.between(_rate(one), _rate(other), floors, looks, shared, trials)
    work = _taken_apart(replace(work, speed=speed), pair)
    if not _may_use_gpus(one, other):
        differ = (d for d in pair.differences if not {d.topic, d.sign} & _GPU_TOPICS)
        pair = replace(pair, differences=tuple(differ))
    changes = (
        replace(one, why=pair.behind(one, work.slower)) if one.claimed else one
        for one in work.changes
    )
    return replace(work, changes=tuple(changes))


def _may_use_gpus(one: Work, other: Work) -> bool:
    """Whether a GPU computed a job on one of two machines, or nobody knows.

    A card that neither of them used explains nothing.
    """
    return any(work.on_gpu or not work.device for work in (one, other))


def _opened(a: Held, b: Held, name: str) -> Explained:
    """A job before it is compared; ``missing`` says why it is not."""
    for side, works in (("A", a.works), ("B", b.works)):
        work = works.get(name)
        if work is None or work.seconds is None:
            why = f": {work.missing}" if work and work.missing else "."
            return Explained(name=name, missing=f"Not measured on {side}{why}")
    one, other = a.works[name], b.works[name]
    job = same_work(a, b, name)
    made = Explained(name=name, unit=one.unit, a=one.seconds, b=other.seconds, job=job)
    if job:
        return replace(made, missing="The two are not the same job.")
    if all(ratios.logarithm(_rate(work)) for work in (one, other)):
        return made
    why = "A step has no interval, or one that no machine can have."
    return replace(made, missing=why)


def _rate(work: Work) -> ratios.Interval:
    low, middle, high = (
        1 / seconds if seconds else None
        for seconds in (work.high, work.seconds, work.low)
    )
    return low, middle, high


def _taken_apart(work: Explained, pair: _Pair) -> Explained:
    """The parts of both, their changes and shares, and B's as expected."""
    one, other = pair.a.works[work.name], pair.b.works[work.name]
    names = tuple(
        name for name in PARTS if _is_known(one, name) and _is_known(other, name)
    )
    if not names:
        return work
    draw = np.random.default_rng(0)
    raw = drawn(one, names, draw), drawn(other, names, draw)
    clean = tuple(
        without_losses(of, loss, what, draw)
        for of, loss, what in zip(raw, pair.losses, (one, other), strict=True)
    )
    told = expected(pair.a, pair.b, work.name, raw[0], draw)
    changes = tuple(_changes(clean[0], clean[1], told, claimed=work.claimed))
    predicted = None
    if told.step is not None:
        low, high = ends(told.step)
        predicted = Predicted(seconds=_middle(told.step), low=low, high=high)
    return replace(work, changes=changes, predicted=predicted)


def _is_known(work: Work, name: str) -> bool:
    part = work.parts.get(name)
    if part is None or part.seconds is None:
        return False
    numbers = (part.seconds, part.low or 0.0, part.high or 0.0)
    return max(map(abs, numbers)) <= _MOST_OF_STEP * (work.seconds or 0.0)


def _changes(a: Drawn, b: Drawn, told: Expected, *, claimed: bool) -> Iterable[Change]:
    whole = b.step - a.step
    for name in ALL_PARTS_AND_REST:
        if name not in a.parts and name not in b.parts:
            continue
        # The clocks of a GPU are told only where they fell.
        one, other = (side.parts.get(name, np.zeros(1)) for side in (a, b))
        change = other - one
        low, high = ends(change)
        scaled = told.parts.get(name)
        made = Change(
            name=name,
            a=_middle(one),
            b=_middle(other),
            change=_middle(change),
            low=low,
            high=high,
            predicted=None if scaled is None else _middle(scaled),
            microbenchmarks=told.microbenchmarks.get(name, ()),
        )
        shares = change / np.where(whole == 0, np.nan, whole)
        shares = shares[np.isfinite(shares)]
        if claimed and len(shares):
            low, high = ends(shares)
            share = _middle(shares)
            made = replace(made, share=share, share_low=low, share_high=high)
        yield made


def _middle(draws: Draws) -> float:
    return float(np.median(draws))


# By parts of a step, the ids of the checks that bear on them.
_CHECKS = {
    ("input", "compute"): "few-cores little-memory",
    (LOAD, "input", "dispatch", "compute"): "busy-cores",
    (THROTTLING, "input", "dispatch", "compute"): "saving-power battery",
    ("input",): "windows-drive",
    ("compute",): "no-xla",
}
# The same of those that are about GPUs.
_GPU_CHECKS = {
    (THROTTLING, "compute"): "throttled",
    ("transfer",): "slow-link",
    ("compute", "transfer"): "shared-gpu",
    ("compute",): (
        "no-driver driver-not-loaded wsl-1 driver-too-old lost-card wrong-cudnn "
        "cpu-only-build hidden-gpu no-kernels unseen-gpu"
    ),
}
_BEARS = {name: parts for parts, ids in _CHECKS.items() for name in ids.split()}
_OF_GPUS = {name: parts for parts, ids in _GPU_CHECKS.items() for name in ids.split()}


def _advice(a: Held, b: Held, works: Iterable[Explained]) -> tuple[Advice, ...]:
    """The remedies that bear on what makes the difference, most seconds first."""
    found = dict[str, Advice]()
    for work in works:
        for one in _advising_of(work, a, b):
            known = found.get(one.title)
            if known is None or known.seconds < one.seconds:
                found[one.title] = one
    return tuple(sorted(found.values(), key=lambda one: -one.seconds))


def _advising_of(work: Explained, a: Held, b: Held) -> Iterator[Advice]:
    if not work.claimed:
        return
    slow, fast = (b, a) if work.slower == "B" else (a, b)
    there = {(check.id, check.title) for check in checks(fast.machine)}
    by_gpus = _may_use_gpus(a.works[work.name], b.works[work.name])
    bearing = _BEARS | (_OF_GPUS if by_gpus else {})
    for check in checks(slow.machine):
        wrong = check.status in ("fail", "warn") and check.remedy
        bears = bearing.get(check.id, ())
        causes = [cause for cause in work.causes if cause.name in bears]
        seconds = sum(abs(cause.change or 0.0) for cause in causes)
        # Both may be busy, the one far more than the other: the causes tell.
        alike = (check.id, check.title) in there and LOAD not in bears
        if wrong and seconds and not alike:
            yield Advice(
                title=check.title,
                remedy=check.remedy,
                seconds=seconds,
                of=work.name,
                parts=tuple(cause.name for cause in causes),
            )
