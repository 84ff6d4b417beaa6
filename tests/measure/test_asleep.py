import pytest

from perfkit.measure.live import Asleep
from tests.machine.trees import grow
from tests.measure.scripted import Clock


def looks(root, *states):
    """Seconds asleep at each look, two apart, by threads as ``(state, worked)``."""
    clock = Clock()
    asleep, seconds = Asleep(7, clock, root), []
    for threads in states:
        for number, (state, worked) in enumerate(threads):
            rest = f"{state} {' 0' * 10} {worked} 0 0"
            stat = f"{number} (a (odd) name) {rest}"
            grow(root, {f"proc/7/task/{number}/stat": stat})
        seconds.append(asleep.seconds())
        clock.forward(2)
    return seconds


@pytest.mark.parametrize(
    ("states", "seconds"),
    [
        # All threads sleep.
        ([[("S", 5), ("S", 0)]] * 2, [0, 2]),
        # One that waits for a core keeps it awake.
        ([[("S", 5), ("R", 0)]] * 2, [0, 0]),
        # Work between two looks is seen.
        ([[("S", 5)], [("S", 6)], [("S", 6)]], [0, 0, 2]),
        # One that nobody can see is not asleep.
        ([[]] * 2, [0, 0]),
    ],
    ids=["asleep", "waits", "works", "not seen"],
)
def test_a_process_is_asleep_whose_threads_all_sleep(tmp_path, states, seconds):
    assert looks(tmp_path, *states) == seconds
