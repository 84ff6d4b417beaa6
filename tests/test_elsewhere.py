"""Functions in processes of their own."""

import os
import threading

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError


def test_it_gives_back_what_the_function_returned_from_another_process():
    here, there = os.getpid(), perfkit.fresh(lambda _: os.getpid())
    assert there != here


def test_what_the_function_prints_is_printed_here(capsys):
    assert perfkit.fresh(lambda _: print("seen", 3)) is None
    assert capsys.readouterr().out == "seen 3\n"


def test_a_guess_is_shown_below_and_kept_with_what_came_of_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)

    def doubled(_):
        return {"twice": 4}

    assert perfkit.fresh(doubled, guess="8 it is") == {"twice": 4}
    assert capsys.readouterr().out == "Your guess: 8 it is\n"
    with pytest.raises(RunError):
        perfkit.fresh(lambda _: 1 / 0, guess="infinite")
    one, other = perfkit.guesses().all
    assert (one.question, one.guess, one.held) == ("doubled", "8 it is", None)
    assert one.measured == "{'twice': 4}"
    assert other.measured.startswith("The function raised ZeroDivisionError")


def test_without_a_guess_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    perfkit.fresh(lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_what_tensorflow_logs_is_left_out(capfd):
    shown = perfkit.fresh(lambda tf: tf.config.list_logical_devices()[0].device_type)
    assert shown == "CPU"
    assert capfd.readouterr() == ("", "")


def test_settings_hold_in_that_process_alone():
    def logical_devices(tf):
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
        return len(tf.config.list_logical_devices("CPU"))

    def as_it_comes(tf):
        return len(tf.config.list_logical_devices("CPU"))

    assert perfkit.fresh(logical_devices) == 2
    assert perfkit.fresh(as_it_comes) == 1


def test_a_function_that_raises_is_a_sentence():
    with pytest.raises(RunError, match=r"The function raised ZeroDivisionError: "):
        perfkit.fresh(lambda _: 1 / 0)


def test_of_what_keras_raises_the_line_is_told_that_says_what_is_wrong():
    def call(_):
        raise ValueError("Exception encountered when calling X.\n\n\x1b[1mBad.\x1b[0m")

    with pytest.raises(RunError, match=r"The function raised ValueError: Bad\. \("):
        perfkit.fresh(call)


def test_a_function_that_ends_its_process_is_a_sentence():
    with pytest.raises(RunError, match=r"The function ended with exit code 3\.$"):
        perfkit.fresh(lambda _: os._exit(3))


def test_a_function_that_hangs_is_ended():
    with pytest.raises(RunError, match="no sign of life for 1 s"):
        perfkit.fresh(lambda _: threading.Event().wait(), timeout=1)


def test_a_function_that_takes_more_memory_than_it_may_is_a_sentence():
    with pytest.raises(RunError, match="ran out of "):
        perfkit.fresh(lambda tf: tf.ones((500, 1000, 1000)).shape, memory=500)


@pytest.mark.parametrize("memory", [0, -1, float("nan"), float("inf")])
def test_memory_that_is_no_amount_is_refused(memory):
    with pytest.raises(BadParameterError, match="give MB, such as 500"):
        perfkit.fresh(lambda _: None, memory=memory)


def test_what_is_no_function_is_refused():
    with pytest.raises(BadParameterError, match="takes a function"):
        perfkit.fresh(3)


def test_what_cannot_travel_is_refused():
    lock = threading.Lock()
    with pytest.raises(BadParameterError, match="make what it needs inside it"):
        perfkit.fresh(lambda _: lock.locked())


def test_a_result_that_cannot_travel_is_a_sentence():
    with pytest.raises(RunError, match="pickle"):
        perfkit.fresh(lambda _: threading.Lock())
