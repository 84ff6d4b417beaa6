"""Every rung that needs no GPU, at work in a real process of its own."""

import pytest

from perfkit.experiments.microbenchmarks import probes
from perfkit.experiments.shared import probe as shared_probe
from perfkit.measure.launcher import launcher
from perfkit.measure.tick import READY
from perfkit.measure.trial import Limits

PROBES = (
    *probes.INTERPRETER,
    *probes.ARRAYS,
    *shared_probe.NUMPY,
    *shared_probe.probes(),
    *probes.PIPELINE,
    *probes.DISPATCH,
    *shared_probe.PRODUCTS,
    *shared_probe.CONVOLUTIONS,
)


@pytest.fixture(scope="module")
def _ready():
    while not launcher().wait(1):
        pass


def ticks_of(work, wanted=3):
    """What a rung counts in its first ticks."""
    running, found = launcher().start(work, 1, Limits()), []
    try:
        while len(found) < wanted:
            for message in running.poll(0.1):
                if message[0] == "ticks":
                    found += [(examples, label) for _, examples, _, label in message[1]]
            assert running.outcome is None, running.message
    finally:
        running.kill("stopped", "the test is over")
    return found


@pytest.mark.usefixtures("_ready")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_a_rung_is_ready_and_then_counts_its_work(probe):
    (_, ready), *ticks = ticks_of(probe.work)
    assert ready == READY.label
    assert all(examples > 0 and not label for examples, label in ticks)


def test_what_is_copied_is_as_long_as_where_it_goes(monkeypatch):
    left = iter([6400, 3200])
    monkeypatch.setattr(shared_probe, "array_bytes", lambda: next(left))
    work = shared_probe.copy(one_core=False)
    assert next(work) is READY
    assert next(work) % (2 * 6400) == 0
    work.close()
