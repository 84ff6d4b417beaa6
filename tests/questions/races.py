"""Runs in which each variant has the rate that is asked for."""

import itertools
import math
import random
import re

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.questions import experiment
from tests.findings.made import completed

# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def trial(
    variant, rate, round=1, *, noise=0.01, first_s=0.05, first=1, wait=0.0, **more
):
    """Forty ticks of 50 ms, after a first call that does ``first`` examples.

    Of each tick ``wait`` is the share that waits for data; ``more`` is the trial's.
    """
    draw = random.Random(f"{variant} {noise}")
    usual = rate * math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    lengths = [0.05 * draw.uniform(0.98, 1.02) for _ in range(40)]
    stamps = list(itertools.accumulate([first_s, *lengths], initial=0.3))
    done = [int(usual * (at - stamps[1]) + 0.5) for at in stamps[1:]]
    counts = [0, first, *(after - before for before, after in itertools.pairwise(done))]
    parts = {"input": (0.0, *(wait * spent for spent in lengths))} if wait else {}
    ticks = zip(stamps, counts, strict=True)
    return completed(variant, round, ticks, parts=parts, **more)


def rounds_of(make, names, *, rounds=4, against=None, variants=(), extra=(), notes=()):
    """A run in which ``make`` gives the trial of each variant, by name and round.

    The first of ``names`` is the baseline. A variant is compared with it, unless
    ``against`` has another. There are ``variants`` besides that were not run, and
    ``extra`` trials; preparing told the ``notes``.
    """
    base, against = next(iter(names)), against or {}
    made = (Variant(name, list, against=against.get(name, base)) for name in names)
    numbered = range(1, rounds + 1)
    trials = (make(name, number) for number in numbered for name in (*names, CONTROL))
    every = {"variants": (*made, *variants), "trials": (*trials, *extra)}
    return Measurement(**every, notes=dict(notes), baseline=base)


def measured(
    rates, against=None, *, firsts=None, told=None, waits=None, refused=None, **more
):
    """A run in which each variant has its examples per second.

    Args:
        rates: Examples per second by variant; the first is the baseline.
        against: What each is compared with, by variant; else with the baseline.
        firsts: Seconds of the first call, by variant.
        told: The notes of each variant's trials.
        waits: The share of a variant's steps that waits for data.
        refused: Why a variant was not run.
        **more: As of ``rounds_of`` and ``trial``.
    """
    run = {n: more.pop(n) for n in ("rounds", "extra", "notes") if n in more}
    timed = dict(rates) | {CONTROL: next(iter(rates.values()))}
    own = {"first_s": firsts, "notes": told, "wait": waits}

    def make(name, number):
        known = {what: of[name] for what, of in own.items() if of and name in of}
        return trial(name, timed[name], number, **more | known)

    gone = [Variant(n, list, unavailable=why) for n, why in (refused or {}).items()]
    return rounds_of(make, rates, against=against, variants=gone, **run)


def sayings(name):
    """What gives an experiment's verdict on a run."""
    return lambda run, **asked: experiment(name, **asked).verdict(run)


def slips(found, verdict):
    """What a verdict says of rates and ratios that the table has as not known."""
    said = f"{verdict.headline} {verdict.much}"
    hidden = [units.rate(t.rate).split()[0] for t in found.timings if not t.is_known]
    hidden += [units.times(c.ratio) for c in found.comparisons if not c.ends]
    of = r"(?<![\d.,]){}(?!\d|[.,]\d)"
    return [number for number in hidden if re.search(of.format(number), said)]
