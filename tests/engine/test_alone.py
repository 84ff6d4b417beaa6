"""The right to measure: one holder at a time, and nobody waits for the dead."""

import os
import threading

import pytest

from perfkit.engine import alone
from perfkit.engine.alone import Alone


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """No other run on this machine is waited for."""
    path = tmp_path / "measuring.lock"
    monkeypatch.setattr(alone, "lock_file", lambda: path)
    monkeypatch.setattr(alone, "_SLICE_S", 0)
    return path


def take(one):
    """Whether it is free."""
    return next(one.wait(threading.Event()), "taken") == "taken"


@pytest.mark.parametrize(
    ("notebook", "budget", "said"),
    [
        ("", 60, "Waiting for the run of loops, about 80 s"),
        ("a/10_your_training.ipynb", 60, "Waiting for the run in 10_your_training, ab"),
        ("console-1", 0, "Waiting for the run of loops"),
    ],
)
def test_who_waits_is_told_for_whom_and_how_long(monkeypatch, notebook, budget, said):
    monkeypatch.setenv("JPY_SESSION_NAME", notebook)
    assert take(Alone("the run of loops", budget))
    assert next(Alone().wait(threading.Event())).startswith(said)


def test_stop_ends_the_wait(own_lock):
    first, second, stopped = Alone(), Alone(), threading.Event()
    # It can be let go without having been taken.
    first.let_go()
    assert take(first)
    # A process that is started meanwhile does not keep it.
    assert not os.get_inheritable(first._file)
    waiting = second.wait(stopped)
    # Whatever stands in the file, the wait is a sentence.
    own_lock.write_bytes(b"\x1b[2J\xff\n9e999" + 700 * b"9")
    assert next(waiting) == "Waiting for another run"
    stopped.set()
    assert list(waiting) == []


def test_the_second_gets_it_when_the_first_lets_go():
    first, second = Alone(), Alone()
    assert take(first)
    waiting = second.wait(threading.Event())
    next(waiting)
    first.let_go()
    assert list(waiting) == []
    assert not take(Alone())
    second.let_go()


def test_nobody_waits_where_nothing_can_be_written_or_a_link_lies(
    own_lock, tmp_path, monkeypatch
):
    own_lock.symlink_to(tmp_path / "precious")
    assert take(Alone())
    assert not (tmp_path / "precious").exists()
    monkeypatch.setattr(alone, "lock_file", lambda: tmp_path / "none" / "lock")
    assert take(Alone())
    assert take(Alone())
