from perfkit.measure import tick
from perfkit.measure.tick import READY, Note, Pause, Tick, every


def test_short_steps_are_grouped_until_a_tick_is_long_enough(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(tick.time, "perf_counter", lambda: next(clock))
    assert list(every([3, 3, 3, 3, 3], seconds=2)) == [Tick(6), Tick(6), Tick(3)]


def test_the_device_is_awaited_once_a_tick():
    awaited = []
    ticks = list(every([1] * 4, seconds=0, sync=lambda: awaited.append(True)))
    assert len(awaited) == len(ticks) == 4


def test_parts_of_steps_add_up_in_their_tick():
    steps = [Tick(2, {"input": 0.25}), 1, Tick(2, {"input": 0.5, "copy": 1.0})]
    assert list(every(steps, seconds=1e9)) == [Tick(5, {"input": 0.75, "copy": 1.0})]
    # A pause ends the tick before it and is passed on.
    steps = [READY, 1, 1, Note("plan", []), Pause("end of epoch"), 1]
    assert list(every(steps, seconds=1e9)) == [
        READY,
        Tick(2),
        Note("plan", []),
        Pause("end of epoch"),
        Tick(1),
    ]
