"""A window of the profiler: from the events of its threads to intervals."""

import pytest

from perfkit.training.account.trace import read
from tests.training.account.spaces import Space, fill

STARTED = 1_000.0


@pytest.fixture
def made(tmp_path):
    """A space with one plane, and what reads it."""
    space = Space()
    return space.plane(), lambda: read(space.write(tmp_path), STARTED), space


def intervals(found, names=None):
    """Begin, end and name of each, the first first."""
    told = [
        (round(b - STARTED, 6), round(e - STARTED, 6), names[w] if names else int(w))
        for b, e, w in zip(found.begin, found.end, found.numbers, strict=True)
    ]
    return sorted(told)


def test_operations_have_their_name_type_and_times(made):
    plane, window, _ = made
    plane.thread().put("dense/MatMul:MatMul", 0.1, 0.3).put("dense/Relu:Relu", 0.3, 0.4)
    found = window()
    assert intervals(found.operations, found.names) == [
        (0.1, 0.3, ("dense/MatMul", "MatMul", "", False)),
        (0.3, 0.4, ("dense/Relu", "Relu", "", False)),
    ]


def test_the_clock_is_that_of_the_file_where_it_tells_one(made):
    plane, window, _ = made
    plane.thread(at=1.5).put("a:MatMul", 0.0, 1.0)
    assert intervals(window().operations)[0][:2] == (1.5, 2.5)
    plane.set("profile_start_time", round((STARTED + 5) * 1e9))
    # A line that counts from 1970 is left as it is.
    plane.thread(at=1.7e9).put("b:MatMul", 0.0, 1.0)
    first, second = sorted(window().operations.begin)
    assert (first, second) == pytest.approx((STARTED + 6.5, 1.7e9))


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("EagerLocalExecute: __inference_one_step_123", "one_step"),
        # TensorFlow puts more around a name.
        ("EagerLocalExecute: __forward_call_77", "call"),
        ("EagerLocalExecute: __inference___backward_call_77_80", "call_77"),
    ],
)
def test_an_executor_says_whose_function_an_operation_is_part_of(made, called, name):
    plane, window, _ = made
    plane.thread().put(called, 0.0, 1.0).put("FunctionRun", 0.1, 0.2, id=7)
    worker = plane.thread("tf_Compute/1")
    worker.put("ExecutorState::Process", 0.2, 0.6, id=7).put("a:MatMul", 0.3, 0.4)
    worker.put("ExecutorState::Process", 0.7, 0.8, id=8).put("b:MatMul", 0.71, 0.79)
    names = {name: function for name, _, function, _ in window().names}
    assert names == {"a": name, "b": ""}


def test_a_function_that_a_dataset_captured_runs_for_the_input(made):
    plane, window, _ = made
    thread = plane.thread()
    thread.put("InstantiatedCapturedFunction::Run", 0.0, 0.1, id=5)
    thread.put("ExecutorState::Process", 0.2, 0.5, id=5).put("decode:Png", 0.3, 0.4)
    plane.thread("tf_data_map").put("resize:Resize", 0.1, 0.2)
    plane.thread("other").put("m:MatMul", 0.1, 0.2)
    of_input = {name: of for name, _, _, of in window().names}
    assert of_input == {"decode": True, "resize": True, "m": False}


WAIT, COMPILE = "IteratorGetNextOp::DoCompute", "HloPassPipeline::Compile"
NESTED = "Iterator::Map::Range"
# Thread, name, begin, end and the stage's name, then what is made of these.
INTERVALS = {
    "a wait for data": ([("a", WAIT, 0.2, 0.7)], "waits", [(0.2, 0.7, 0)]),
    "short pauses between passes of the compiler": (
        [
            *(("a", COMPILE, 0.0, 1.0), ("a", "algsimp", 1.2, 1.3)),
            *(("a", "fusion", 3.0, 3.5), ("a", "dce", 3.1, 3.2)),
        ],
        "compiles",
        [(0.0, 1.3, 0), (3.0, 3.5, 0)],
    ),
    "all that threads of the code generator do": (
        [("tf_xla-cpu-codegen/12", "anything", 0.0, 0.5)],
        "compiles",
        [(0.0, 0.5, 0)],
    ),
    "a stage is cut where another one works within it": (
        [
            ("a", "Iterator::Map", 0.0, 1.0, "perfkit:1"),
            ("a", NESTED, 0.2, 0.3, "perfkit:0"),
            ("a", NESTED, 0.5, 0.8, "perfkit:0"),
        ],
        "stages",
        [(0.0, 0.2, 1), (0.2, 0.3, 0), (0.3, 0.5, 1), (0.5, 0.8, 0), (0.8, 1.0, 1)],
    ),
    "a stage without a number is nobody's": (
        [("a", "Iterator::Map", 0.0, 1.0, "mine"), ("a", "Iterator::Map", 1.0, 2.0)],
        "stages",
        [],
    ),
    # A stage that hands on what others make does no work itself.
    **{
        kind: (
            [
                ("a", f"Iterator::{kind}", 0.0, 1.0, "perfkit:0"),
                ("a", f"Iterator::{kind}::Range", 0.4, 0.6, "perfkit:1"),
            ],
            "stages",
            [(0.4, 0.6, 1)],
        )
        for kind in ("Prefetch", "ParallelMapV2", "MapAndBatch", "Root")
    },
}


@pytest.mark.parametrize(
    ("events", "of", "expected"), INTERVALS.values(), ids=INTERVALS
)
def test_events_become_intervals(made, events, of, expected):
    plane, window, _ = made
    fill(plane, events)
    found = window()
    assert intervals(getattr(found, of)) == expected
    # Every stage is counted, whoever's it is.
    stages = sum(name.startswith("Iterator::") for _, name, *_ in events)
    assert sum(found.counts.values()) == stages


def test_xla_work_is_named_by_the_operation_that_its_module_tells(made):
    from tensorflow.compiler.xla.service import hlo_pb2

    plane, window, space = made
    proto = hlo_pb2.HloProto()
    proto.hlo_module.name = "cluster_1"
    one = proto.hlo_module.computations.add().instructions.add(name="dot.4")
    one.metadata.op_name = "dense/MatMul"
    space.plane("/host:metadata").holds("cluster_1", proto.SerializeToString())
    thread = plane.thread("tf_XLAEigen/1")
    thread.put("call.1", 0.0, 1.0, hlo_op="call.1", hlo_module="cluster_1")
    thread.put("dot.4", 0.2, 0.6, hlo_op="dot.4", hlo_module="cluster_1")
    thread.put("a word", 2.0, 3.0)
    found = window()
    assert intervals(found.operations, [name for name, *_ in found.names]) == [
        (0.0, 0.2, "call.1"),
        (0.2, 0.6, "dense/MatMul"),
        (0.6, 1.0, "call.1"),
    ]
    assert {kind for _, kind, _, _ in found.names} == {"XLA"}
