from dataclasses import replace

import pytest

from perfkit.findings.profile import ProfiledStep
from perfkit.findings.report import in_text
from tests.training.profile.profiled import DENSE, HELD, KERNEL, MAP, profile


def test_the_tracers_cost_shows_where_steps_took_longer_than_most_others():
    made = profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 9 + (0.5,))
    assert made.cost == pytest.approx(1.2)
    # Of few times the longest counts: tenths would leave out the most of them.
    assert not profile(traced_s=(0.0099,), untraced_s=(0.0098, 0.01)).shows_cost
    assert not profile(traced_s=(1.19,), untraced_s=(1.0, 1.2)).shows_cost
    assert profile(traced_s=(0.0101,), untraced_s=(0.0098, 0.01)).shows_cost
    said = repr(profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 3))
    assert "a step takes 10 ms without it (10 ms to 10 ms in all of 3 times)" in said
    assert "so the times below are 1.20× as long" in said
    made = profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 9, at_a_time=8)
    assert "an execution of 8 steps takes 10 ms without it" in repr(made)
    assert "in most of 9 times" in repr(made)

    # A single time is its own range.
    assert profile(untraced_s=(0.01,)).usual_step_s == (0.01, 0.01)


def test_tables_have_the_share_of_a_device_and_a_row_of_parts_for_each_step():
    steps = (
        ProfiledStep(name="a", seconds=0.004, parts={"input": 0.004}),
        ProfiledStep(name="b", seconds=0.002, parts={"host compute": 0.002}),
    )
    assert profile(steps=steps).parts == {"input": 0.002, "host compute": 0.001}
    device = replace(DENSE, device="device", self_s=7.0)
    table = profile(table=(device, DENSE, MAP)).ops()
    assert list(table["share"]) == pytest.approx([1.0, 0.75, 0.25])
    assert list(table.columns)[:3] == ["name", "type", "device"]
    table = profile().input()
    assert ", ".join(table.columns) == "step, seconds, input, host compute, all other"
    assert (len(table), table["input"].iloc[0]) == (8, 0.006)
    # Tables of what is not there are empty, and have their columns.
    made = profile(steps=(), table=(), stages=())
    named = {"ops": "share", "input": "seconds", "input_stages": "self_s"}
    for table, column in {**named, "kernels": "share", "memory": "peak"}.items():
        assert getattr(made, table)().empty
        assert column in getattr(made, table)().columns
    # Kernels and memory have tables where there are any.
    made = profile(launched=(KERNEL,), held=(HELD,), missing={})
    assert list(made.kernels()["share"]) == [1.0]
    assert list(made.memory()["peak"]) == [10**9]
    said = in_text(made.report, in_full=True)
    assert "ampere_sgemm_128x64_nn: 4 ms, 100 %, 10 times" in said
    assert "GPU_0_bfc: at most 1 GB of 8 GB in use" in said


def test_the_report_says_where_the_time_went_and_what_it_is_no_proof_of():
    lines = in_text(profile().report, in_full=True).splitlines()
    first = "train.py:make_training: 10 steps under TensorFlow's profiler, 10 ms each."
    assert lines[0] == first
    assert ["input", "6", "ms", "60", "%"] in [line.split() for line in lines]
    assert "- model/dense/MatMul: 30 ms, 75 % of the host's, 10 times" in lines
    assert "- No kernels." in lines
    assert any("it does not prove one" in line for line in lines)
    assert any("analyses 8 of the 10 steps" in line for line in lines)
    assert ": 10 executions of 8 steps under" in repr(profile(at_a_time=8))
    words = "explain less than a tenth"
    assert words not in repr(profile())
    assert words in repr(profile(table=(MAP,)))
    assert words not in repr(profile(table=()))
