"""Passports made by hand: machines that differ by a factor that is known."""

from perfkit.findings.training import PARTS, Part, Training
from perfkit.machines.record import BenchmarkRate, Passport
from tests.findings.made import MACHINE
from tests.findings.parts import RATES
from tests.machines import looked

JOB = {"network": "three layers", "data": "in memory", "recipe": 1}


SAMPLES = 60


def benchmark(name, rate, unit, group, width=0.03, **more):
    """The rate of a microbenchmark, known to so much on either side."""
    interval = {"low": rate * (1 - width), "high": rate * (1 + width), "trials": 3}
    known = {"name": name, "what": f"what {name} does", "unit": unit, "group": group}
    return BenchmarkRate(rate=rate, **interval, **known, **more)


def passport(label="ada's desk", speed=1.0, *, without=(), **more):
    """The passport of a machine that does everything ``speed`` times as fast.

    It lacks the microbenchmarks ``without``; ``more`` are fields of the passport.
    """
    benchmarks = []
    for name, (rate, unit, group, limit) in RATES.items():
        if name in without:
            missing = {"missing": "Its library is missing."}
            one = BenchmarkRate(name=name, group=group, unit=unit, **missing)
        else:
            limits = {"limit": limit and limit * speed}
            limits["limit_from"] = "2 cores at 64 FLOP a tick" if limit else ""
            one = benchmark(name, rate * speed, unit, group, **limits)
        benchmarks.append(one)
    fields = {
        "label": label,
        "recorded": "2025-03-14T09:26:53+01:00",
        "perfkit": "0.1.0",
        "machine": MACHINE,
        "checks": (looked.SLOW,),
        "microbenchmarks": tuple(benchmarks),
        "trainings": (training("tiny dense", 0.002 / speed),),
        "samples": {
            "t": tuple(float(at) for at in range(SAMPLES)),
            "cpu_trial": (1.5,) * SAMPLES,
            "cpu_other": (None,) * SAMPLES,
        },
        "noise_floors": {"machine-ladder": 1.03},
        "budget_s": 180.0,
    }
    return Passport(**fields | more)


def stopped():
    """The passport of a recording that was stopped before it measured anything."""
    disk = BenchmarkRate(name="disk", unit="B", missing="There is none.")
    dense = Training(name="dense", batch=32, missing="No room.")
    nothing = {"microbenchmarks": (disk,), "trainings": (dense,), "samples": {}}
    return passport(stopped=True, missed=("The budget ended.",), **nothing)


def training(name, seconds, **more):
    """A reference training whose step is input and compute, half of each."""
    parts = tuple(
        Part(
            name=part,
            seconds=seconds / 2 if part in ("input", "compute") else 0.0,
            low=0.0,
            high=seconds,
            how=f"by swapping the {part}",
        )
        for part in PARTS
    )
    fields = {
        "name": name,
        "what": f"{name}, in a line",
        "job": JOB,
        "batch": 32,
        "weights": 1000,
        "seconds": seconds,
        "low": seconds * 0.9,
        "high": seconds * 1.1,
        "trials": 3,
        "parts": parts,
        "device": "CPU:0",
    }
    return Training(**fields | more)
