"""Diagnoses made by hand, with gains that are known."""

from perfkit.findings.diagnosis import (
    TOGETHER,
    WITHOUT_INPUT,
    WITHOUT_OBSERVERS,
    Cause,
    Diagnosis,
    Gain,
    Seconds,
    Together,
)
from perfkit.findings.record import Verdict
from perfkit.training.diagnose import gains
from perfkit.training.diagnose.causes import KNOWN
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.findings import made

RATES = {
    AS_GIVEN: 1000.0,
    "parallel map": 2500.0,
    "without CSVLogger": 1300.0,
    "XLA": 1005.0,
    "without input": 3600.0,
    TOGETHER: 3000.0,
}
# What a diagnosis has of the finding of its rates.
SHARED = (
    *("recorded", "perfkit", "machine", "trials", "samples", "timings", "comparisons"),
    *("noise_floor", "baseline"),
)


def gain(estimate, spread=0.05):
    return Gain(
        estimate=estimate, low=estimate * (1 - spread), high=estimate * (1 + spread)
    )


def cause(name, change, estimate, kind="defect", spread=0.05, **more):
    known, texts = KNOWN.get(name), {"do": f"Do something about {name}"}
    if known:
        texts = {"do": known.do, "mind": known.mind, "group": known.group}
    texts["ceiling"] = change in (WITHOUT_INPUT, WITHOUT_OBSERVERS)
    return Cause(
        cause=name,
        change=change,
        kind=kind,
        speedup=gain(estimate, spread),
        evidence=f"Only {change} differs.",
        fix=f"use({change!r})",
        **texts | more,
    )


SLOW_MAP = cause("serial-map", "parallel map", 2.5)
LOGGER = cause(
    "callback",
    "without CSVLogger",
    1.3,
    do="Leave `CSVLogger` out, or let it do less",
    subject="Without it the training",
)


def diagnosis(causes=(SLOW_MAP, LOGGER), rates=None, **more):
    """A diagnosis of a step of 32 ms whose variants have known rates."""
    found = made.finding(rates or RATES, against=AS_GIVEN)
    fields = {name: getattr(found, name) for name in SHARED} | {
        "training": "train.py:make_training",
        "step": Seconds(median_s=0.032, low=0.031, high=0.0335),
        "verdict": Verdict(
            headline="Run the maps in parallel.",
            much="The training then runs 2.5 times as fast.",
            because=("As it is a step takes 32 ms.",),
            next="use('parallel map')",
        ),
        "healthy": not any(one.kind == "defect" for one in causes),
        "causes": tuple(causes),
        "together": Together(
            changes=("parallel map", "without CSVLogger"),
            speedup=_gain_of(found, TOGETHER),
        ),
        "ceiling": _gain_of(found, "without input"),
        "untested": {"no-cache": "the pipeline is random"},
        "budget_s": 120.0,
    }
    return Diagnosis(**fields | more)


def _gain_of(found, variant):
    compared = (gains.gain(c) for c in found.comparisons if c.variant == variant)
    return next(compared, gain(1.0))
