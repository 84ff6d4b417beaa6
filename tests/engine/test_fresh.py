"""Functions in processes of their own."""

import os
import threading

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError


def test_what_the_function_returned_comes_back(here, capsys):
    there = perfkit.fresh(lambda _: print("seen", 3) or os.getpid())
    assert there != os.getpid()
    assert capsys.readouterr().out == "seen 3\n"
    assert list(here.iterdir()) == []


def test_a_guess_is_shown(capsys):
    assert perfkit.fresh(lambda _: {"twice": 4}, guess="8 it is") == {"twice": 4}
    assert capsys.readouterr().out == "Your guess: 8 it is\n"
    with pytest.raises(RunError):
        perfkit.fresh(lambda _: 1 / 0, guess="infinite")
    assert capsys.readouterr().out == "Your guess: infinite\n"


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


def keras_raises(_):
    raise ValueError("Exception encountered when calling X.\n\n\x1b[1mBad.\x1b[0m")


def graph_raises(_):
    raise ValueError(
        "Graph execution error:\n\nDetected at node dense/MatMul defined at (most "
        'recent call last):\n  File "train.py", line 3, in <module>\n'
        "<stack traces unavailable>\nNo such shape[9,9]\n\t [[{{node dense/MatMul}}]]"
    )


@pytest.mark.parametrize(
    ("function", "limits", "said"),
    [
        (lambda _: 1 / 0, {}, r"The function raised ZeroDivisionError: "),
        # Of what Keras raises the line is told that says what is wrong.
        (keras_raises, {}, r"The function raised ValueError: Bad\. \("),
        (graph_raises, {}, r"raised ValueError: No such shape\[9,9\] \("),
        (lambda _: os._exit(3), {}, r"The function ended with exit code 3\.$"),
        (lambda _: threading.Event().wait(), {"timeout": 1}, "no sign of life for 1 s"),
        (lambda tf: tf.ones((500, 1000, 1000)).shape, {"memory": 500}, "ran out of "),
        (lambda _: threading.Lock(), {}, "pickle"),
    ],
    ids=[
        "raises",
        "Keras raises",
        "a graph raises",
        "exits",
        "hangs",
        "memory",
        "cannot travel",
    ],
)
def test_a_function_that_fails_is_a_sentence(function, limits, said):
    with pytest.raises(RunError, match=said):
        perfkit.fresh(function, **limits)


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("function", "limits", "said"),
    [
        *((lambda _: None, {"memory": memory}, "give MB, such as 500")
          for memory in (0, -1, float("nan"), float("inf"))),
        (3, {}, "takes a function"),
        (lambda _, lock=LOCK: lock.locked(), {}, "make what it needs inside it"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(function, limits, said):
    with pytest.raises(BadParameterError, match=said):
        perfkit.fresh(function, **limits)
