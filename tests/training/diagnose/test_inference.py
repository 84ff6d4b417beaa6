import pytest

from perfkit.engine.measurement import Measurement
from perfkit.findings.diagnosis import Seconds
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.gains import inferred
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.findings.made import completed

STEP = Seconds(median_s=0.01, low=0.009, high=0.011)
KNOWN = {"changed": {}, "because": [], "traces": 9, "seconds": 1.0, "made_anew": True}


def traced(*seconds):
    """A trial of 100 steps for each, in which tracing took so many seconds."""
    trials = [
        completed(
            AS_GIVEN,
            number,
            ((1.0, 0), (2.0, 10), (3.0, 10)),
            notes={"steady": {"steps": 100, "tracing": {"traces": 5, "seconds": s}}},
        )
        for number, s in enumerate(seconds, 1)
    ]
    return Measurement(variants=(), trials=tuple(trials))


def causes(found, facts):
    return {c.cause: c for c in inferred((), STEP, found, facts)}


def test_tracing_that_no_change_stops_is_inferred_from_its_seconds():
    found = traced(0.50, 0.52, 0.48)
    cause = causes(found, Facts(retraced={"train_step": KNOWN}))["retracing"]
    # 5 ms of each step of 10 ms.
    assert cause.speedup.estimate == pytest.approx(2.0, rel=0.02)
    assert "Retracing `train_step` takes 50 % of a step." in cause.evidence
    keras = KNOWN | {"library": "the input of `predict`", "made_anew": True}
    cause = causes(found, Facts(retraced={"Dataset_map_take": keras}))["retracing"]
    assert "Retracing the input of `predict` takes 50 %" in cause.evidence
    assert cause.fix.startswith("Each call makes it again")
    # A single trial claims nothing.
    assert causes(traced(0.5), Facts(retraced={"train_step": KNOWN})) == {}
