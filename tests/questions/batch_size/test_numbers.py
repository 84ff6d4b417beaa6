from dataclasses import replace

import pytest

from perfkit.questions.batch_size import BatchSize, Knee
from tests.questions.batches import by_cost, measured


def shown(run):
    return BatchSize().result(run)


def test_a_line_tells_overhead_and_cost_apart_if_there_are_enough_sizes():
    line = shown(measured(by_cost(0.002, 3e-4))).line
    assert [part.value for part in line.each] == pytest.approx([0.002, 3e-4], rel=0.05)
    assert shown(measured(by_cost(0.0, 1e-3))).line.each[0].low == 0
    # Two points make no line.
    assert shown(measured(by_cost(0.002, 1e-4, (4, 64)))).line is None


@pytest.mark.parametrize(
    ("run", "size"),
    [
        # From 64 on the rate is 10,000 a second; below, the step costs 6.4 ms.
        (measured({n: max(n, 64) / 10_000 for n in (4, 16, 64, 256, 1024)}), 64),
        (measured(by_cost(0.1, 1e-7)), 1024),
        (measured(by_cost(0.0, 1e-3)), 4),
        (measured(by_cost(0.002, 1e-3), noise=0.4), None),
        (measured(by_cost(0.0, 1e-3), noise=0.4, rounds=1), None),
    ],
)
def test_the_knee_is_the_smallest_size_as_fast_as_any_if_one_is_shown(run, size):
    knee = shown(run).knee
    assert (knee.size if knee.firm else None) == size


def test_a_larger_size_that_is_too_noisy_to_say_leaves_the_knee_open():
    def is_firm(*ties):
        sizes = {"size": 4, "best": 4, "smallest": 4, "largest": 256}
        return Knee(ties=ties, **sizes).firm

    noisy = measured(by_cost(0.0, 1e-3, (4, 64)), noise=0.4)
    wide = noisy.compare("batch 64", "batch 4")
    same = replace(wide, verdict="no difference shown")
    assert is_firm()
    assert is_firm((64, same))
    assert not any(is_firm((64, same), (256, tie)) for tie in (wide, None))
