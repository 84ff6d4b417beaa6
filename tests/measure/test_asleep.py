from perfkit.measure.live import Asleep
from tests.measure.scripted import Clock


def process(root, *threads):
    """A process whose threads are ``(state, clock ticks worked)``."""
    for number, (state, worked) in enumerate(threads):
        task = root / "proc" / "7" / "task" / str(number)
        task.mkdir(parents=True, exist_ok=True)
        rest = f"{state} {' 0' * 10} {worked} 0 0"
        (task / "stat").write_text(f"{number} (a (odd) name) {rest}")


def slept(root, clock, asleep, seconds):
    clock.forward(seconds)
    return asleep.seconds()


def test_a_process_whose_threads_all_sleep_is_asleep(tmp_path):
    clock = Clock()
    process(tmp_path, ("S", 5), ("S", 0))
    asleep = Asleep(7, clock, tmp_path)
    assert asleep.seconds() == 0
    assert slept(tmp_path, clock, asleep, 2) == 2


def test_one_thread_that_waits_for_a_core_keeps_it_awake(tmp_path):
    clock = Clock()
    process(tmp_path, ("S", 5), ("R", 0))
    asleep = Asleep(7, clock, tmp_path)
    assert slept(tmp_path, clock, asleep, 2) == 0


def test_work_between_two_looks_is_seen(tmp_path):
    clock = Clock()
    process(tmp_path, ("S", 5))
    asleep = Asleep(7, clock, tmp_path)
    asleep.seconds()
    process(tmp_path, ("S", 6))
    assert slept(tmp_path, clock, asleep, 2) == 0
    assert slept(tmp_path, clock, asleep, 3) == 3


def test_a_process_that_nobody_can_see_is_not_asleep(tmp_path):
    clock = Clock()
    asleep = Asleep(7, clock, tmp_path)
    assert slept(tmp_path, clock, asleep, 9) == 0
