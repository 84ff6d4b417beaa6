"""Every second ends on a line, once."""

import random

import numpy as np
import pytest

from perfkit.findings.account import Call, Retraced, Stage
from perfkit.training.account.places import Kind
from perfkit.training.account.trace import Grid, Intervals
from tests.training.account.seen import TRAINED, Seen, row, rows, trace
from tests.training.account.spaces import fill

MINE = "train.py"
FIT, DENSE, ADAM, MAP, LOOP, READ = ((MINE, line) for line in (30, 10, 20, 5, 40, 6))
STEPS = "one_step"


@pytest.fixture
def seen(tmp_path):
    return Seen(tmp_path)


# The grid, against sums over many small pieces.

FINE = 1000


@pytest.mark.parametrize("seed", range(8))
def test_a_grid_shares_each_moment_out_among_what_is_active_then(seed):
    draw = np.random.default_rng(seed)
    # Some of them begin before the window or end after it.
    begin, end = np.sort(draw.integers(-100, FINE + 100, (2, 9)), axis=0) / FINE
    numbers, values = draw.integers(0, 3, 9), draw.random(10)
    inner = draw.choice(np.arange(1, FINE), 9, replace=False)
    edges = np.array([0, *sorted(inner), FINE]) / FINE
    intervals = Intervals(begin, end, numbers)
    grid = Grid(edges, [intervals])
    shared = dict(grid.shared(intervals, grid.over(values), grid.active[0]))
    middle = (np.arange(FINE) + 0.5) / FINE
    within = (begin[:, None] < middle) & (middle < end[:, None])
    # Each piece has the value of the sample in whose stretch it lies.
    weights = values[np.searchsorted(edges, middle) - 1]
    each = (within * weights / np.maximum(within.sum(0), 1)).sum(1) / FINE
    expected = np.bincount(numbers, each, 3)
    assert [shared.get(n, 0.0) for n in range(3)] == pytest.approx(expected)
    assert grid.spans.sum() == pytest.approx(1.0)


# Samples alone.


def test_without_windows_the_line_of_each_second_is_known_and_no_more(seen):
    seen.spent(FIT, "graph", 4.0, "fit").spent(LOOP, "python", 1.0)
    seen.spent(MAP, "data", 2.0, "fit").spent(READ, "computing", 0.5)
    seen.spent(None, "python", 0.25)
    found = seen.charge()
    assert rows(found) == {
        FIT: {"computing": 4.0},
        LOOP: {"Python": 1.0},
        MAP: {"waiting": 2.0},
        READ: {"computing": 0.5},
    }
    assert found["elsewhere_s"] == 0.25


def test_what_comes_before_the_first_gradient_was_done_once(seen):
    seen.spent(READ, "python", 3.0, repeats=False).spent(FIT, "python", 1.0)
    seen.spent(READ, "graph", 2.0, repeats=False).spent(READ, "import", 0.5)
    seen.spent(None, "import", 0.25, repeats=False)
    found = seen.charge()
    assert rows(found) == {FIT: {"Python": 1.0}}
    assert found["once_s"] == 5.75


def test_a_function_traced_once_or_twice_was_done_once(seen):
    seen.spent(FIT, "traced", 4.0, "fit")
    seen.told["traces"] = [trace(STEPS, FIT, 2.0), trace(STEPS, FIT, 2.0)]
    found = seen.charge()
    assert rows(found) == {}
    assert found["once_s"] == 4.0


def test_a_function_traced_again_and_again_is_set_up_that_repeats(seen):
    seen.spent(FIT, "traced", 8.0, "f")
    seen.told["traces"] = [
        *(trace("f", FIT, 1.5) for _ in range(4)),
        # Another one of the same line, which was traced once.
        trace("g", FIT, 2.0),
        # Before the training began.
        trace("f", FIT, 9.0, TRAINED - 1),
    ]
    found = seen.charge()
    assert rows(found) == {FIT: {"set-up": 6.0}}
    assert found["once_s"] == pytest.approx(2.0)
    assert row(found, FIT).traces == (Retraced(name="f", count=4, seconds=6.0),)


def test_set_up_of_one_call_was_done_once_and_of_many_it_repeats(seen):
    seen.spent(FIT, "set-up", 2.0, "fit").spent(LOOP, "set-up", 3.0, "predict")
    seen.told["calls"] = [[*FIT, "fit", 1], [*LOOP, "predict", 60]]
    found = seen.charge()
    assert rows(found) == {LOOP: {"set-up": 3.0}}
    assert row(found, LOOP).calls == (Call(name="predict", count=60, seconds=3.0),)


def test_a_line_that_makes_iterators_has_a_row_and_no_call_for_them(seen):
    seen.spent(FIT, "python", 1.0)
    seen.told["iterators"] = [[*LOOP, 40], [*READ, 1]]
    found = seen.charge()
    assert [one.calls for one in found["lines"]] == [(), ()]
    assert {(one.file, one.line) for one in found["lines"]} == {FIT, LOOP}


@pytest.mark.parametrize("seed", range(12))
def test_no_second_is_lost_and_none_is_counted_twice(seen, seed):
    draw = random.Random(seed)
    kinds = ("graph", "data", "python", "computing", "traced", "set-up", "import")
    kinds += (Kind.PASS_END,)
    places = (FIT, LOOP, READ, None)
    for _ in range(30):
        place, kind = draw.choice(places), draw.choice((*kinds, "callback"))
        repeats = draw.random() < 0.7
        call = draw.choice(("", "fit"))
        seen.spent(place, kind, draw.randrange(1, 99) / 16, call, repeats=repeats)
    seen.told["trained_at"] = draw.choice((0.0, TRAINED))
    seen.told["traces"] = [
        trace("f", draw.choice(places[:3]), draw.random())
        for _ in range(draw.randrange(9))
    ]
    if seed % 2:
        seen.window(0.0, [GRAPH] * 30, events(*STEPS_RUN))
    found = seen.charge()
    rows_s = sum(sum(each.values()) for each in rows(found).values())
    told = rows_s + found["once_s"] + found["elsewhere_s"] + found["pass_ends_s"]
    assert told == pytest.approx(sum(seconds for _, seconds in seen.told["seconds"]))
    assert all(s >= 0 for each in rows(found).values() for s in each.values())


# Windows.

MATMUL, ADDS = "seq/dense/MatMul:MatMul", "adam/AddV2:AddV2"
WAITS = "IteratorGetNextOp::DoCompute"
GRAPH = (FIT, "fit", "graph")
# Three quarters of the window in one layer, a quarter in the optimizer.
STEPS_RUN = [
    event
    for at in (0.0, 0.1, 0.2)
    for event in (("a", MATMUL, at, at + 0.075), ("a", ADDS, at + 0.075, at + 0.1))
]


def events(*told):
    return lambda plane: fill(plane, told)


def known(seen):
    seen.told["made"] = [["layer", "dense", *DENSE], ["optimizer", "adam", *ADAM]]
    seen.told["classes"] = {"dense": "Dense"}
    seen.told["operations"] = {
        STEPS: {
            "seq/dense/MatMul": [list(FIT), 0, True, 64, "", ""],
            "adam/AddV2": [list(FIT), 0, True, 1_000_000, "", ""],
        },
        "Dataset_map_1": {"decode": [list(READ), 0, False, 1, "", ""]},
    }
    seen.told["stages"] = [[list(MAP), "MapDataset"], [None, "Range"]]
    seen.told["traces"] = [trace(STEPS, FIT, 1.0, trains=True)]
    return seen


# What runs in a window of 0.3 s; nine seconds by line and kind; and more of a line.
SPLITS = {
    "traced operations": (
        STEPS_RUN,
        {DENSE: {"computing": 6.75}, ADAM: {"computing": 2.25}},
        {
            # Of the two steps that are whole.
            (DENSE, "parts"): ("layer dense Dense",),
            (ADAM, "elements"): 1_000_000,
            (ADAM, "operations"): 1.0,
        },
    ),
    "the backward pass of a layer": (
        [
            ("a", MATMUL, 0.0, 0.1),
            ("a", "gradient_tape/seq/dense/MatMul/MatMul:MatMul", 0.1, 0.3),
        ],
        {DENSE: {"computing": 9.0}},
        {(DENSE, "backward"): 2 / 3},
    ),
    "two threads at work": (
        [("a", MATMUL, 0.0, 0.3), ("b", ADDS, 0.1, 0.3)],
        # 0.1 + 0.2 / 2 and 0.2 / 2 of 0.3.
        {DENSE: {"computing": 6.0}, ADAM: {"computing": 3.0}},
        {},
    ),
    "a wait for the lines that make the input": (
        [
            ("a", MATMUL, 0.0, 0.1),
            ("a", WAITS, 0.1, 0.3),
            ("tf_data_1", "Iterator::Map", 0.1, 0.2, "perfkit:0"),
            ("tf_data_1", "decode:Png", 0.2, 0.3),
        ],
        {DENSE: {"computing": 3.0}, MAP: {"input": 3.0}, READ: {"input": 3.0}},
        {(MAP, "beside_s"): 0.0},
    ),
    "input that no step waits for": (
        [
            ("a", MATMUL, 0.0, 0.3),
            ("tf_data_1", "Iterator::Map", 0.0, 0.2, "perfkit:0"),
        ],
        {DENSE: {"computing": 9.0}},
        # 0.2 of 0.3 traced seconds, of nine.
        {(MAP, "beside_s"): 6.0},
    ),
    "starting the second of two operations": (
        [("a", MATMUL, n * 0.03 + 0.02, n * 0.03 + 0.03) for n in range(10)],
        {DENSE: {"computing": 9.0}},
        {(DENSE, "starting_s"): 6.0},
    ),
    "compiling while nothing runs": (
        [("a", MATMUL, 0.2, 0.3), ("compiler", "HloPassPipeline::Compile", 0.0, 0.2)],
        {FIT: {"set-up": 6.0}, DENSE: {"computing": 3.0}},
        {},
    ),
    "Python that nobody saw": (
        [("a", "PyFunc:PyFunc", 0.0, 0.3)],
        {FIT: {"Python": 9.0}},
        {},
    ),
}


@pytest.mark.parametrize(("told", "expected", "more"), SPLITS.values(), ids=SPLITS)
def test_seconds_of_a_graph_are_split_as_what_was_traced_is(seen, told, expected, more):
    known(seen).spent(FIT, "graph", 9.0, "fit")
    found = seen.window(0.0, [GRAPH] * 30, events(*told), updates=3).charge()
    assert rows(found) == {at: pytest.approx(each) for at, each in expected.items()}
    for (place, name), value in more.items():
        assert getattr(row(found, place), name) == pytest.approx(value)
    assert found["traced_s"] == pytest.approx(0.3)


def test_python_in_a_graph_is_that_of_the_lines_seen_in_other_threads(seen):
    known(seen).spent(FIT, "graph", 8.0, "fit")
    seen.told["background"] = [[*READ, 3.0], [*LOOP, 1.0]]
    put = events(("tf_data_1", "PyFunc:EagerPyFunc", 0.0, 0.3), ("a", WAITS, 0.0, 0.3))
    found = seen.window(0.0, [GRAPH] * 30, put).charge()
    assert rows(found) == {
        READ: pytest.approx({"input": 6.0}),
        LOOP: pytest.approx({"input": 2.0}),
    }


def test_gradients_of_weights_that_have_changed_are_counted_apart(seen):
    told = trace("f", FIT, 1.0, trains=True) | {"backward": [FIT, FIT, None, FIT]}
    known(seen).told["traces"].append(told)
    assert seen.charge()["backward"] == [[*FIT, 2]]


def test_a_wait_in_which_nothing_is_seen_at_work_stays_with_the_line(seen):
    known(seen).spent(LOOP, "data", 6.0)
    samples = [GRAPH] * 10 + [(LOOP, "", "data")] * 20
    found = seen.window(0.0, samples, events(("a", MATMUL, 0.0, 0.1))).charge()
    assert rows(found) == {LOOP: pytest.approx({"waiting": 6.0})}


def test_a_line_that_no_window_saw_borrows_from_nobody(seen):
    known(seen).spent(LOOP, "graph", 5.0, "predict")
    found = seen.window(0.0, [GRAPH] * 30, events(*STEPS_RUN)).charge()
    assert (rows(found), found["untraced"] != "") == ({LOOP: {"computing": 5.0}}, True)


def test_several_windows_add_up_and_empty_ones_split_nothing(seen):
    known(seen).spent(FIT, "graph", 9.0, "fit")
    seen.window(0.0, [], events(*STEPS_RUN)).window(5.0, [GRAPH], events())
    assert rows(seen.charge()) == {FIT: {"computing": 9.0}}
    seen.window(6.0, [GRAPH] * 30, events(*STEPS_RUN), updates=3)
    seen.window(9.0, [GRAPH] * 30, events(("a", ADDS, 0.0, 0.3)), updates=1)
    found = seen.charge()
    assert rows(found)[DENSE]["computing"] == pytest.approx(9 * 0.15 / 0.5)
    assert rows(found)[ADAM]["computing"] == pytest.approx(9 * 0.35 / 0.5)


@pytest.mark.parametrize("skip", ["Iterator::FiniteSkip", "Iterator::Shard"])
def test_a_skip_is_given_what_its_source_gave(seen, skip):
    known(seen).spent(MAP, "python", 1.0)
    paths = [skip, f"{skip}::ParallelMapV2", *[f"{skip}::ParallelMapV2::Range"] * 8]
    put = [("a", path, n / 9, n / 8, "perfkit:0") for n, path in enumerate(paths)]
    found = seen.window(0.0, [GRAPH] * 30, events(*put)).charge()
    assert {o.path: o.given for o in found["stages"]}.get(skip) == 8


def test_stages_say_how_many_elements_they_took_and_gave(seen):
    known(seen).spent(MAP, "python", 1.0)
    path = "Iterator::Filter::Range"
    taken = (
        ("tf_data_1", path, n / 100, n / 100 + 0.001, "perfkit:1") for n in range(8)
    )
    given = (
        ("tf_data_1", path[:16], n / 10, n / 10 + 0.01, "perfkit:0") for n in (1, 2)
    )
    found = seen.window(0.0, [GRAPH] * 30, events(*taken, *given)).charge()
    assert sorted(found["stages"], key=lambda one: one.out) == [
        Stage(path="Iterator::Filter", line=found["places"].index(MAP), out=2, given=8),
        Stage(path=path, line=-1, out=8, given=0),
    ]


def test_what_the_ends_of_a_window_cut_off_counts_for_nothing(seen):
    known(seen).spent(FIT, "graph", 8.0, "fit")
    # Steps of 0.2 s, most of it one long operation; the window holds one of them whole.
    steps = [
        *(("a", ADDS, at, at + 0.01) for at in (0.08, 0.28)),
        ("a", MATMUL, 0.09, 0.28),
    ]
    found = seen.window(0.0, [GRAPH] * 35, events(*steps), updates=1).charge()
    assert rows(found)[DENSE]["computing"] == pytest.approx(8 * 0.95)
