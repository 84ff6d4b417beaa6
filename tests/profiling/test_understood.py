"""xprof's tables made into records, and what is said where they are none."""

import json

import pytest

from perfkit.errors import BadFileError
from perfkit.profiling import traces
from tests.profiling import profiled


def test_a_step_keeps_all_its_parts_in_seconds():
    text = json.dumps(profiled.steps_table((4.0, 1.0), (5.0, 1.5)))
    first, second = traces.steps(text)
    assert (first.name, second.name) == ("train 0", "train 1")
    parts = {"input": 0.004, "host compute": 0.001, "device compute": 0.0}
    assert first.parts == pytest.approx(parts | {"all other": 0.0005})
    assert second.seconds == pytest.approx(0.007)
    assert sum(second.parts.values()) == pytest.approx(second.seconds)


def test_a_part_that_a_later_xprof_tells_is_kept_under_its_own_name():
    made = profiled.steps_table((4.0, 1.0))
    made[1] = profiled.table(
        [{"stepnum": "train 0", "sparseTimeMs": 2.0, "stepTimeMs": 2.0}]
    )
    (step,) = traces.steps(json.dumps(made))
    assert step.parts == {"sparse": 0.002}


def test_stages_come_with_the_dearest_first():
    text = json.dumps(profiled.steps_table((4.0, 1.0)))
    stages = traces.stages(text)
    assert [stage.name for stage in stages] == ["Root::Map", "Iterator::Root"]
    assert stages[1].total_s == pytest.approx(0.003)
    assert stages[0].count == 320


def test_idle_time_is_no_operation():
    made = profiled.ops_table(
        ("Host", "IDLE", "IDLE", 0.0, 9e6, 9e6),
        ("Device", "MatMul", "dense/MatMul", 10.0, 300.0, 200.0),
        ("Host", "Dataset", "Iterator::Root", 20.0, 900.0, 600.0),
    )
    for tables in (made, made[:1]):
        found = traces.ops(json.dumps(tables))
        assert [(op.name, op.device) for op in found] == [
            ("Iterator::Root", "host"),
            ("dense/MatMul", "device"),
        ]
    assert found[0].self_s == pytest.approx(600e-6)


def test_a_kernel_tells_whether_it_uses_tensor_cores():
    made = profiled.kernels_table(("sgemm", 100.0, False), ("hgemm", 400.0, True))
    first, second = traces.kernels(json.dumps(made))
    assert first.name == "hgemm"
    assert first.tensor_cores
    assert first.could_use_them
    assert second.total_s == pytest.approx(1e-4)
    assert first.occupancy == 0.5


def test_a_trace_without_kernels_has_none():
    assert traces.kernels(json.dumps(profiled.kernels_table())) == ()


def test_memory_is_told_in_bytes_though_xprof_writes_texts():
    text = json.dumps(profiled.memory_table(GPU_0_bfc=353024))
    (held,) = traces.memory(text)
    assert (held.allocator, held.peak, held.peak_ever) == ("GPU_0_bfc", 353024, 543744)
    assert held.capacity == 64 * 2**30
    assert traces.memory(json.dumps(profiled.memory_table())) == ()


@pytest.mark.parametrize("read", [read for _, read in traces._READERS.values()])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "3",
        '[{"cols": [{"id": "operation"}], "rows": [{"c": [{"v": 1}]}]}]',
        '{"cols": [{"id": "kernel_name"}], "rows": [{"c": 3}]}',
        '{"memoryProfilePerAllocator": {"a": {}}}',
        '[{"cols": [{"id": "stepnum"}, {"id": "opName"}], "rows": [{"c": [null]}]}]',
    ],
)
def test_what_is_no_table_is_told_in_a_sentence(read, text):
    with pytest.raises(BadFileError, match="xprof gave a table that this perfkit"):
        read(text)


def test_what_the_profiler_warns_of_is_found():
    made = profiled.steps_table((4.0, 1.0))
    made[3] = profiled.table([{"severity": "ERROR", "message": "CUPTI was refused"}])
    assert traces.warnings_of(json.dumps(made)) == ("CUPTI was refused",)
    assert traces.warnings_of(json.dumps(profiled.steps_table((4.0, 1.0)))) == ()
    assert traces.warnings_of("none") == ()
