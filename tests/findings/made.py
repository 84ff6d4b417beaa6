"""Findings made by hand, with ticks whose rate is known."""

import random
from dataclasses import replace

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.trial import Trial
from perfkit.findings.record import MEASURED, Finding, Verdict
from perfkit.machine.record import Machine

MACHINE = Machine(
    cpu="Intel Xeon Platinum 8481C",
    cores=8,
    cores_granted=2.0,
    memory=16 * 10**9,
    system="Linux 6.1",
    python="3.11.7",
    versions={"tensorflow": "2.21.0", "numpy": "2.4.6"},
    environment={"OMP_NUM_THREADS": "2"},
)
QUESTION = "Which way of feeding images keeps this machine busy?"


def trial(variant, rate, round=1, *, started=0.0, ticks=40, noise=0.02, **more):
    """A trial whose ticks come at ``rate`` examples per second, give or take."""
    draw = random.Random(f"{variant} {round}")
    at, stamps, waits = 0.31, [(0.31, 0)], []
    usual = rate * draw.gauss(1, noise)
    for _ in range(ticks):
        spent = 0.05 * draw.gauss(1, noise)
        at += spent
        stamps.append((int(at * 1e9) / 1e9, max(1, int(usual * 0.05 + 0.5))))
        waits.append(spent * 0.4)
    known = {"started_s": started, "wall_s": at, "parts": {"input": tuple(waits)}}
    return completed(variant, round, stamps, 0.31, **known, **more)


def completed(variant, round, ticks, setup_s=0.3, **more):
    """A trial that ran to its end."""
    again = {"variant": variant, "round": round, "setup_s": setup_s}
    return Trial(**again, outcome="completed", ticks=tuple(ticks), **more)


def failed(variant, outcome, message, round=1):
    return Trial(variant=variant, round=round, outcome=outcome, message=message)


def samples(seconds, period=0.2):
    """The load of a machine on which another process comes by half way."""
    count = int(seconds / period)
    half = [i > count // 2 for i in range(count)]
    return {
        "t": tuple(round(i * period, 3) for i in range(count)),
        "cpu_trial": tuple(1.6 - 0.5 * busy for busy in half),
        "cpu_other": tuple(0.1 + 0.6 * busy for busy in half),
        "cpu_perfkit": (0.02,) * count,
        "memory_trial": tuple(None if i < 3 else 6e8 for i in range(count)),
        "core_speed": tuple(None if i % 2 else 1 - 0.2 * b for i, b in enumerate(half)),
    }


def finding(rates=None, *, rounds=3, against="naive", extra=(), **more):
    """A finding in which each variant has the rate that is asked for."""
    rates = rates or {"naive": 1000.0, "parallel": 1300.0, "prefetched": 1900.0}
    trials, at = [], 0.0
    for number in range(1, rounds + 1):
        both = dict(rates) | ({CONTROL: rates[against]} if against in rates else {})
        for variant, rate in both.items():
            trials.append(trial(variant, rate, number, started=at))
            at += trials[-1].wall_s + 0.1
    variants = tuple(Variant(name, work=iter, against=against) for name in rates)
    every = {"trials": (*trials, *extra), "samples": samples(at)}
    measured = Measurement(variants=variants, baseline=against, **every)
    best = max(rates, key=rates.get) if rates else ""
    fields = {name: getattr(measured, name) for name in (*MEASURED, "notes")} | {
        "experiment": "data-pipeline",
        "question": QUESTION,
        "parameters": {"image_side": 256, "augment": True, "images": None},
        "recorded": "2025-03-14T09:26:53+01:00",
        "perfkit": "0.1.0",
        "machine": MACHINE,
        "verdict": Verdict(
            headline=f"{best} is the fastest way here.",
            because=("It was ahead in every round.", "The model waits less."),
            next="dataset = dataset.prefetch(tf.data.AUTOTUNE)",
            winner=best,
        ),
        "budget_s": 60.0,
        "seed": 7,
    }
    return Finding(**fields | more)


def of_run(run, **more):
    """A finding of a measurement whose ticks are known."""
    said = {"verdict": Verdict(headline="x")} | more
    fields = {name: getattr(run, name) for name in MEASURED if name != "samples"}
    fields["notes"] = run.notes
    return replace(finding({}, rounds=0), **fields | said)
