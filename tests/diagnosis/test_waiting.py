from perfkit.diagnosis import tracing
from perfkit.diagnosis.tracing import Tracing, Waiting
from perfkit.measure.tick import READY, Tick


def threads(root, **told):
    for name, text in told.items():
        folder = root / "proc/self/task" / name
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(text)


def test_all_threads_are_added_up(tmp_path):
    threads(tmp_path, t1="2000000000 500000000 7\n", t2="1000000000 250000000 3\n")
    assert tracing.read(tmp_path) == Waiting(ran_s=3.0, waited_s=0.75)


def test_a_thread_that_ended_meanwhile_is_passed_over(tmp_path):
    threads(tmp_path, t1="2000000000 500000000 7\n", t2="")
    assert tracing.read(tmp_path) == Waiting(ran_s=2.0, waited_s=0.5)


def test_a_system_that_does_not_tell_is_no_zero(tmp_path):
    assert tracing.read(tmp_path) is None


def test_what_came_between_two_readings_is_kept(monkeypatch):
    readings = iter([Waiting(1.0, 1.0), Waiting(3.0, 1.5), Waiting(5.0, 2.0)])
    monkeypatch.setattr(tracing, "read", lambda: next(readings))
    *_, told = tracing.noted([READY, Tick(1)], Tracing(), 1)
    assert told.value[tracing.WAITED] == {"ran_s": 2.0, "waited_s": 0.5}
