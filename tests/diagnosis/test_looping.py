import pytest

from perfkit.diagnosis.epochs import EPOCH_END, Epochs
from perfkit.diagnosis.looping import Looping
from perfkit.diagnosis.steps import steps
from perfkit.measure.tick import Pause, Tick
from perfkit.workloads.execution.inside_fit import Left


class Turnstile:
    """Writes down what is told, and lets nobody in after so much of it."""

    def __init__(self, most):
        self.told, self.most = [], most

    def tell(self, what):
        self.told.append(what)
        if len(self.told) >= self.most:
            raise Left


def looped(function, epochs, most_told=12, **options):
    """Run a loop until so much is told; returns that, and the one who listened."""
    turnstile, looping = Turnstile(most_told), Looping(epochs, **options)
    with pytest.raises(Left):
        looping.made(function, turnstile)
    return turnstile.told, looping


@pytest.fixture(autouse=True)
def every_step_is_a_tick(monkeypatch):
    monkeypatch.setattr("perfkit.diagnosis.counting.TICK_S", 0.0)
    monkeypatch.setattr("perfkit.diagnosis.counting.wait", lambda: None)


def test_a_loop_without_epochs_goes_on_with_the_data_anew():
    seen = []

    def function():
        for batch in steps([1, 2, 3]):
            seen.append(batch)
        seen.append("past the loop")

    told, looping = looped(function, Epochs(batch=8))
    assert seen == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert told == [Pause("set-up"), *[Tick(8)] * 11]
    assert not looping.repeated
    assert looping.length == 3


def test_epochs_end_early_and_the_last_one_does_not_end():
    seen = []

    def function():
        for epoch in range(3):
            for batch in steps(range(100)):
                seen.append((epoch, batch))
            seen.append("validation")
        seen.append("past the loop")

    epochs = Epochs(batch=8, steps=100, trial_steps=3)
    told, looping = looped(function, epochs, most_told=10)
    assert looping.repeated
    ended = [(0, 0), (0, 1), (0, 2), "validation", (1, 0), (1, 1), (1, 2), "validation"]
    assert seen == [*ended, *((2, batch) for batch in range(7))]
    end = Pause(EPOCH_END, every=800, within=8)
    assert told == [Pause("set-up"), *[Tick(8)] * 2, end, *[Tick(8)] * 6]


def test_epochs_are_seen_through_a_function_that_makes_one():
    def epoch():
        for _ in steps([1, 2]):
            pass

    def function():
        while True:
            epoch()

    _, looping = looped(function, Epochs(batch=1), most_told=9)
    assert looping.repeated
    assert looping.begun == 3


def test_a_loop_that_is_left_by_its_own_code_is_run_anew():
    def function():
        for number, _ in enumerate(steps(range(100))):
            if number == 4:
                break

    told, looping = looped(function, Epochs(batch=1), most_told=9)
    assert looping.length == 5
    assert told == [
        Pause("set-up"),
        *([Tick(1)] * 3),
        Pause("set-up"),
        *([Tick(1)] * 3),
        Pause("set-up"),
    ]


def test_a_swap_changes_the_data_once_and_for_every_epoch():
    class Tenfold:
        applied = 0

        def apply(self, training):
            batches = list(training.data())
            training.data = lambda: (10 * batch for batch in batches)
            self.applied += 1

    swap, data, seen = Tenfold(), [1, 2], []

    def function():
        for _ in range(5):
            seen.extend(steps(data))

    looped(function, Epochs(batch=1, steps=2), most_told=6, swaps=[swap])
    assert swap.applied == 1
    assert seen[:4] == [10, 20, 10, 20]


def test_a_loop_without_data_is_refused():
    from perfkit.errors import BadParameterError

    looping = Looping(Epochs(batch=1))

    def function():
        for _ in steps([]):
            pass

    with pytest.raises(BadParameterError, match="made no step"):
        looping.made(function, Turnstile(1))
