"""Findings made by hand: microbenchmarks that count something else each."""

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.findings.record import Verdict
from tests.findings import made

PRODUCT = "NumPy product, float32"
# Rate, unit, group, limit.
RATES = {
    "loop over an array": (2e7, "elements", "arrays", None),
    PRODUCT: (2e11, "FLOP", "arrays", 5e11),
    "memory copy": (2e10, "B", "memory", None),
    "graph call": (4000.0, "calls", "TensorFlow", None),
}


def note(rates=RATES):
    found = {}
    for name, (_, unit, group, limit) in rates.items():
        source = "2 cores at 64 FLOP a tick" if limit else ""
        told = {"unit": unit, "group": group, "what": f"what {name} does"}
        found[name] = told | {"limit": limit, "limit_from": source}
    return found


def measured(rates=RATES, rounds=3, notes=None):
    """What is known after some rounds of microbenchmarks."""
    trials = [
        made.trial(name, rate, number)
        for number in range(1, rounds + 1)
        for name, (rate, *_) in {**rates, CONTROL: rates[PRODUCT]}.items()
    ]
    return Measurement(
        variants=tuple(Variant(name, iter) for name in rates),
        trials=tuple(trials),
        notes={"microbenchmarks": note(rates), "cores": 2} | (notes or {}),
        baseline=PRODUCT,
    )


def finding(rates=RATES, rounds=3, notes=None, **more):
    """A finding of the machine-ladder experiment."""
    fields = {
        "experiment": "machine-ladder",
        "question": "How fast is each part of this machine?",
        "samples": made.finding().samples,
        "verdict": Verdict(headline="Products reach 40 % of the limit."),
    }
    return made.of_run(measured(rates, rounds, notes), **fields | more)
