"""Runs in which each variant has the rate that is asked for."""

import itertools
import math
import random

from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.measure.trial import Trial

# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def trial(variant, rate, round=1, *, noise=0.01, first_s=0.05, first=1, notes=()):
    """Forty ticks of 50 ms, after a first call that does ``first`` examples."""
    draw = random.Random(f"{variant} {noise}")
    usual = rate * math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    lengths = [0.05 * draw.uniform(0.98, 1.02) for _ in range(40)]
    stamps = list(itertools.accumulate([first_s, *lengths], initial=0.3))
    done = [int(usual * (at - stamps[1]) + 0.5) for at in stamps[1:]]
    counts = [0, first, *(after - before for before, after in itertools.pairwise(done))]
    return Trial(
        variant=variant,
        round=round,
        outcome="completed",
        setup_s=0.3,
        ticks=tuple(zip(stamps, counts, strict=True)),
        notes=dict(notes),
    )


def told(variant, **notes):
    """A trial outside the rounds that told something."""
    return Trial(variant=variant, round=0, outcome="completed", notes=notes)


def measured(
    rates,
    against=None,
    *,
    firsts=None,
    notes=None,
    told=None,
    refused=None,
    extra=(),
    rounds=4,
    **more,
):
    """A run of so many rounds.

    Args:
        rates: Examples per second by variant; the first is the baseline.
        against: What each is compared with, by variant; else with the baseline.
        firsts: Seconds of the first call, by variant.
        notes: Of the run.
        told: The notes of each variant's trials.
        refused: Why a variant was not run.
        extra: Trials besides.
        rounds: How many trials each.
        **more: As of ``trial``.
    """
    firsts, told, base = firsts or {}, told or {}, next(iter(rates))
    trials = [
        trial(
            name,
            rate,
            number,
            notes=told.get(name, {}),
            **more | ({"first_s": firsts[name]} if name in firsts else {}),
        )
        for number in range(1, rounds + 1)
        for name, rate in (dict(rates) | {CONTROL: rates[base]}).items()
    ]
    variants = [
        Variant(name, list, against=(against or {}).get(name, base)) for name in rates
    ]
    variants += [
        Variant(name, list, unavailable=why) for name, why in (refused or {}).items()
    ]
    return Measurement(
        variants=tuple(variants),
        trials=(*trials, *extra),
        notes=notes or {},
        baseline=base,
    )
