"""Ladders made by hand: rungs that count something else each."""

from perfkit.findings.record import Verdict
from perfkit.measure.measurement import TWIN, Arm, Measurement
from tests.findings import made

PRODUCT = "NumPy product, float32"
# Rate, unit, group, limit.
RUNGS = {
    "Python loop": (2e7, "steps", "interpreter", None),
    PRODUCT: (2e11, "FLOP", "arrays", 5e11),
    "memory copy": (2e10, "B", "memory", None),
    "graph call": (4000.0, "calls", "TensorFlow", None),
}


def note(rungs=RUNGS):
    return {
        name: {
            "unit": unit,
            "group": group,
            "what": f"what {name} does",
            "limit": limit,
            "limit_from": "2 cores at 64 FLOP a tick" if limit else "",
        }
        for name, (_, unit, group, limit) in rungs.items()
    }


def measured(rungs=RUNGS, rounds=3, notes=None):
    """What is known after some rounds of a ladder."""
    trials = [
        made.trial(name, rate, number)
        for number in range(1, rounds + 1)
        for name, (rate, *_) in {**rungs, TWIN: rungs[PRODUCT]}.items()
    ]
    return Measurement(
        arms=tuple(Arm(name, iter) for name in rungs),
        trials=tuple(trials),
        notes={"rungs": note(rungs), "cores": 2} | (notes or {}),
        baseline=PRODUCT,
    )


def finding(rungs=RUNGS, rounds=3, notes=None, **more):
    """A finding of the machine-ladder experiment."""
    found = measured(rungs, rounds, notes)
    fields = {
        "experiment": "machine-ladder",
        "question": "How fast is each part of this machine?",
        "trials": found.trials,
        "timings": found.timings,
        "comparisons": found.comparisons,
        "noise_floor": found.noise_floor,
        "baseline": found.baseline,
        "notes": found.notes,
        "verdict": Verdict(headline="Products reach 40 % of the limit."),
    }
    return made.finding(**fields | more)
