"""What a training adds to memory, from readings that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from perfkit.training.account.memory import (
    MemoryReadings,
    estimate_growth,
    fills_up,
    growth_of,
)
from tests.training.account.accounts import line

MB = 1e6
# Imports, the first trace and the pools of the first two epochs.
WARM = [600.0, 180.0]
FIT = ("train.py", 12)


def readings(*added, warm=WARM):
    """The readings of ends that each add so many MB, behind two that warm up."""
    return [
        (end, int(MB * held)) for end, held in enumerate(np.cumsum([*warm, *added]), 1)
    ]


def noisy(added, sd, seed, ends=28):
    """The same with noise on each reading, which goes away, and a walk that stays."""
    rng = np.random.default_rng(seed)
    walk = rng.normal(added, sd, ends) + np.diff(rng.normal(0, sd, ends + 1))
    return readings(*walk)


@pytest.mark.parametrize("seed", range(20))
def test_five_mb_with_each_of_ten_epochs_are_found(seed):
    each = estimate_growth(noisy(5.0, 0.5, seed, ends=8))
    assert each.low < 5 * MB * 1.1
    assert each.high > 5 * MB * 0.9
    assert each.value == pytest.approx(5 * MB, rel=0.2)


def test_growth_that_is_alike_has_no_spread_and_a_second_reading_changes_nothing():
    each = estimate_growth(readings(*[5.0] * 8) + readings(*[5.0] * 8)[-1:])
    assert (each.low, each.value, each.high) == pytest.approx((5 * MB,) * 3)


def test_a_leak_that_shows_as_steps_of_a_pool_is_found_over_many_ends():
    steps = [2.0 if end % 4 == 0 else 0.0 for end in range(100)]
    assert estimate_growth(readings(*steps)).value == pytest.approx(0.5 * MB, rel=0.1)


def test_one_jump_is_left_out_of_what_each_end_adds():
    each = estimate_growth(readings(5, 5, 5, 90, 5, 5, 5, 5))
    assert each.value == pytest.approx(5 * MB)


@pytest.mark.parametrize(
    "added",
    [
        pytest.param([0] * 30, id="nothing"),
        pytest.param([5] * 7, id="too few ends"),
        pytest.param([0.1] * 30, id="too little to mind"),
        pytest.param([0, 30, 0, 0, 30, 0, 0, 0, 30], id="steps of a pool"),
        pytest.param([0, 0, 300, 0, 0, 0, 0, 0, 0], id="one step"),
        pytest.param([20] * 14 + [0] * 10, id="a buffer that is full by now"),
        pytest.param([64 / 2**end for end in range(12)], id="pools that fill"),
        pytest.param([5] * 11 + [-55], id="collected at last"),
        pytest.param([5, 5, 5, -15] * 6, id="collected again and again"),
        pytest.param([-5] * 12, id="given back"),
    ],
)
def test_what_is_no_leak_is_not_called_one(added):
    # What warms up is larger than any leak.
    assert estimate_growth(readings(*added)) is None


def test_memory_that_wanders_is_rarely_said_to_grow():
    claims = [estimate_growth(noisy(0.0, 5.0, seed)) for seed in range(400)]
    assert sum(each is not None for each in claims) <= 2


def process(*held):
    """One whose memory is told, in MB; files that it maps come and go."""
    shared = (int(mb * MB) for mb in held)
    told = (SimpleNamespace(rss=2 * count, shared=count) for count in shared)
    return SimpleNamespace(memory_info=lambda: next(told))


def test_what_ends_in_a_window_is_read_after_it():
    memory = MemoryReadings(_process=process(100, 115, 120))
    memory.note_end("epoch", FIT)
    memory.begin_window()
    # Nothing is read meanwhile, however often it ends.
    memory.note_end("epoch", FIT)
    memory.note_end("epoch", FIT)
    memory.end_window()
    memory.note_end("epoch", FIT)
    ends = [(1, 100 * MB), (3, 115 * MB), (4, 120 * MB)]
    assert memory.bytes_at == {("epoch", FIT): ends}


def test_calls_that_come_often_are_read_now_and_then():
    memory = MemoryReadings(_process=process(*range(50, 90)))
    for _ in range(35):
        memory.note_end("predict", FIT)
    assert memory.bytes_at["predict", FIT] == [(n, (49 + n) * MB) for n in (1, 2, 3)]


LINES = line(12), line(30)


def grown(*series, models=(), lines=LINES, fills=(False, False)):
    """The growth of an account that was charged so; its lines are 12 and 30."""
    memory = [[unit, FIT, ends] for unit, ends in series]
    charges = {"memory": memory, "models": models, "fills": fills}
    index = {("train.py", one.line): number for number, one in enumerate(lines)}
    return growth_of(charges, lines, index)


LEAK = readings(*[5.0] * 10)
FLAT = readings(*[0.0] * 10)


def test_the_fit_is_named_before_its_epochs_and_only_where_it_grows():
    growth = grown(("epoch", LEAK), ("fit", LEAK))
    assert (growth.unit, growth.kept, growth.line, growth.ends) == ("fit", "", 0, 12)
    assert grown(("fit", FLAT), ("epoch", LEAK)).unit == "epoch"
    assert grown(("fit", FLAT)) is None
    assert grown() is None


def test_the_line_that_makes_models_or_has_functions_traced_as_often_is_named():
    growth = grown(("fit", LEAK), models=[["train.py", 12, 2], ["train.py", 30, 12]])
    assert (growth.kept, growth.line) == ("models", 1)
    traced = (line(12), line(30, traces=[("step", 11, 1.0)]))
    growth = grown(("fit", LEAK), lines=traced)
    assert (growth.kept, growth.line) == ("traces", 1)
    # An ensemble that is made once is not what each fit adds.
    growth = grown(("fit", LEAK), models=[["train.py", 30, 5]])
    assert (growth.kept, growth.line) == ("", 0)


def test_what_may_still_be_filling_is_no_leak():
    cached = fills_up(["TensorSliceDataset", "CacheDataset"])
    assert grown(("epoch", LEAK), fills=cached)
    repeated = fills_up(["CacheDataset", "_RepeatDataset"])
    assert grown(("epoch", LEAK), fills=repeated) is None
    # Calls end with no pass over the data.
    assert grown(("train_on_batch", LEAK), fills=cached) is None
    assert grown(("train_on_batch", LEAK), fills=fills_up(["_RepeatDataset"]))
