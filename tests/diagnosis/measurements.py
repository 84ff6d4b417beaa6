"""Measurements of a training and its swaps, with rates that are known."""

from perfkit.diagnosis.choosing import AS_GIVEN
from perfkit.diagnosis.swap import Swap
from perfkit.measure.measurement import TWIN, Arm, Measurement
from tests.findings.made import trial


def swap(name, cause, kind="defect", **more):
    return Swap(
        name=name,
        cause=cause,
        kind=kind,
        changes=f"{name} is another.",
        fix=f"swap({name!r})",
        apply=lambda training: None,
        **more,
    )


def measured(rounds=3, trials=(), **gains):
    """So many rounds of the training as given, and of swaps with these gains."""
    names = {name.replace("_", " "): gain for name, gain in gains.items()}
    rates = {AS_GIVEN: 1.0, TWIN: 1.0} | names
    arms = [Arm(name, lambda: iter(()), "", AS_GIVEN) for name in names]
    made = [
        trial(name, 1000 * rate, number, started=10 * number, noise=0.001)
        for number in range(1, rounds + 1)
        for name, rate in rates.items()
    ]
    given = Arm(AS_GIVEN, lambda: iter(()), "")
    return Measurement(arms=(given, *arms), trials=(*made, *trials), baseline=AS_GIVEN)
