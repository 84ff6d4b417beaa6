"""Profiles made by hand, and tables as xprof 2.24 gives them."""

from dataclasses import replace

from perfkit.findings.profile import Held, Kernel, Op, Profile, ProfiledStep, Stage
from tests.findings.made import MACHINE

STEP = ProfiledStep(
    name="train 1",
    seconds=0.010,
    parts={"input": 0.006, "host compute": 0.003, "all other": 0.001},
)
TEN = {"device": "host", "count": 10}
DENSE = Op(name="model/dense/MatMul", type="MatMul", total_s=0.030, self_s=0.030, **TEN)
MAP = Op(name="Iterator::Root::Map", type="Dataset", total_s=0.06, self_s=0.010, **TEN)
KERNEL = Kernel(
    name="ampere_sgemm_128x64_nn",
    op="model/dense/MatMul",
    count=10,
    total_s=0.004,
    least_s=0.0003,
    most_s=0.0005,
    occupancy=0.5,
    tensor_cores=False,
    could_use_them=True,
)
HELD = Held(
    allocator="GPU_0_bfc",
    capacity=8 * 10**9,
    peak=10**9,
    peak_ever=2 * 10**9,
    fragmentation=0.1,
)


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
        missing={"kernels": "No kernels.", "memory": "No memory."},
        trace_bytes=131_000,
    )
    return replace(made, **changes)


def table(rows):
    """A table in the form of Google's charts; each row is a dict of its columns."""
    ids = list(rows[0])
    return {
        "cols": [{"id": name, "label": name, "type": "number"} for name in ids],
        "rows": [{"c": [{"v": row[name]} for name in ids]} for row in rows],
    }


def steps_table(*rows):
    """What ``input_pipeline_analyzer`` gives for steps of these milliseconds."""
    made = [
        {
            "stepnum": f"train {number}",
            "deviceComputeTimeMs": 0.0,
            "hostComputeTimeMs": host,
            "infeedTimeMs": wait,
            "otherTimeMs": 0.5,
            "stepTimeMs": host + wait + 0.5,
        }
        for number, (wait, host) in enumerate(rows)
    ]
    stages = [
        {
            "opName": name,
            "count": 320.0,
            "timeInMs": total,
            "selfTimeInMs": own,
            "category": "Preprocessing",
        }
        for name, total, own in (("Iterator::Root", 3.0, 1.0), ("Root::Map", 2.0, 2.0))
    ]
    said = {"cols": [{"id": "severity"}, {"id": "message"}], "rows": []}
    return [{"cols": [], "rows": []}, table(made), table(stages), said]


def kernels_table(*rows):
    """What ``kernel_stats`` gives for kernels of these microseconds."""
    made = [
        {
            "kernel_name": name,
            "occupancy_pct": 50.0,
            "is_op_tensor_core_eligible": True,
            "is_kernel_using_tensor_core": uses,
            "op_name": "model/dense/MatMul",
            "occurrences": 10.0,
            "total_duration_us": total,
            "min_duration_us": total / 20,
            "max_duration_us": total / 5,
        }
        for name, total, uses in rows
    ]
    if not made:
        return {"cols": [{"id": "kernel_name"}], "rows": []}
    return table(made)


def memory_table(**allocators):
    """What ``memory_profile`` gives; numbers are texts in it."""
    return {
        "memoryProfilePerAllocator": {
            name: {
                "profileSummary": {
                    "peakBytesUsageLifetime": "543744",
                    "peakStats": {
                        "heapAllocatedBytes": "353024",
                        "fragmentation": 0.25,
                        "peakBytesInUse": str(peak),
                    },
                    "memoryCapacity": "68719476736",
                }
            }
            for name, peak in allocators.items()
        },
        "numHosts": 1,
    }
