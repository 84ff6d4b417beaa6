"""What the loop in circulation does to a model whose costs are known."""

import pytest

from perfkit.experiments.batch_size.usual_loop import loop
from tests.measure.scripted import Clock

TRACE, OVERHEAD, COST, COUNT = 0.8, 0.002, 1e-5, 1024
SIZES = (4, 64, 1024)


class Scripted:
    """Costs a trace at its first call, whatever the size, and then what it costs."""

    def __init__(self):
        self.clock, self._traced = Clock(), False

    def fit(self, size):
        self.clock.forward(0 if self._traced else TRACE)
        self._traced = True
        self.clock.forward(COUNT / size * OVERHEAD + COUNT * COST)

    def seconds(self):
        return self.clock() / 1e9


def told(sizes):
    model = Scripted()
    return dict(loop(sizes, model.fit, COUNT, model.seconds))


def fair(size):
    return size / (OVERHEAD + COST * size)


def test_the_first_size_pays_for_tracing_and_no_other():
    rates = told(SIZES)
    epoch = COUNT / fair(4)
    assert rates[4] == pytest.approx(COUNT / (epoch + TRACE))
    assert rates[64] == pytest.approx(fair(64))
    assert rates[1024] == pytest.approx(fair(1024))


def test_run_backwards_it_says_that_the_largest_is_the_slowest():
    rates = told(SIZES[::-1])
    assert rates[1024] < rates[64]
    assert rates[1024] < fair(1024) / 50
    assert fair(1024) > fair(64)
    assert rates[4] == pytest.approx(fair(4))
