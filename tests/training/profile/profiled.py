"""Profiles made by hand, and tables as xprof 2.24 gives them."""

from dataclasses import replace

from perfkit.findings.profile import Op, Profile, ProfiledStep, Stage
from tests.findings.made import MACHINE

STEP = ProfiledStep(
    name="train 1",
    seconds=0.010,
    parts={"input": 0.006, "host compute": 0.003, "all other": 0.001},
)
TEN = {"device": "host", "count": 10}
DENSE = Op(name="model/dense/MatMul", type="MatMul", total_s=0.030, self_s=0.030, **TEN)
MAP = Op(name="Iterator::Root::Map", type="Dataset", total_s=0.06, self_s=0.010, **TEN)


def profile(**changes):
    """Ten steps of 10 ms, of which 6 ms are waits for input."""
    made = Profile(
        training="train.py:make_training",
        recorded="2026-05-04T10:00:00+02:00",
        perfkit="0.1.0",
        machine=MACHINE,
        xprof="2.24.2",
        traced_s=(0.010,) * 10,
        untraced_s=(0.008, 0.0085, 0.009),
        steps=(STEP,) * 8,
        table=(DENSE, MAP),
        stages=(
            Stage(
                name="Iterator::Root::Map",
                category="Preprocessing",
                count=10,
                total_s=0.06,
                self_s=0.05,
            ),
        ),
        trace_bytes=131_000,
    )
    return replace(made, **changes)


def steps_table(*rows):
    """What ``input_pipeline_analyzer`` gives for steps of these ms; none of stages."""
    ids = ("stepnum", "infeedTimeMs", "hostComputeTimeMs", "otherTimeMs", "stepTimeMs")
    steps = [
        (f"train {number}", wait, host, 0.5, wait + host + 0.5)
        for number, (wait, host) in enumerate(rows)
    ]
    table = {
        "cols": [{"id": name} for name in ids],
        "rows": [{"c": [{"v": value} for value in step]} for step in steps],
    }
    return [{"cols": [], "rows": []}, table]
