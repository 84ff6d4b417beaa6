"""Functions in processes of their own."""

import os
import threading

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError


def test_what_is_printed_and_returned_comes_back_before_the_guess(here, capsys):
    there = perfkit.fresh(lambda _: print("seen", 3) or os.getpid(), guess="8 it is")
    assert there != os.getpid()
    assert capsys.readouterr().out == "seen 3\nYour guess: 8 it is\n"
    assert list(here.iterdir()) == []


def test_settings_hold_in_that_process_alone_and_no_log_is_shown(capfd):
    def logical_devices(tf, count):
        (cpu,) = tf.config.list_physical_devices("CPU")
        if count > 1:
            parts = [tf.config.LogicalDeviceConfiguration()] * count
            tf.config.set_logical_device_configuration(cpu, parts)
        return len(tf.config.list_logical_devices("CPU"))

    for count in (2, 1):
        assert perfkit.fresh(lambda tf, n=count: logical_devices(tf, n)) == count
    assert capfd.readouterr() == ("", "")


def keras_raises(_):
    raise ValueError("Exception encountered when calling X.\n\n\x1b[1mBad.\x1b[0m")


def graph_raises(_):
    raise ValueError(
        "Graph execution error:\n\nDetected at node dense/MatMul defined at (most "
        'recent call last):\n  File "train.py", line 3, in <module>\n'
        "<stack traces unavailable>\nNo such shape[9,9]\n\t [[{{node dense/MatMul}}]]"
    )


FAILS = {
    "raises": (lambda _: 1 / 0, {}, r"The function raised ZeroDivisionError: "),
    # Of what Keras raises the line is told that says what is wrong.
    "Keras raises": (keras_raises, {}, r"The function raised ValueError: Bad\. \("),
    "a graph raises": (graph_raises, {}, r"raised ValueError: No such shape\[9,9\] \("),
    "exits": (lambda _: os._exit(3), {}, r"The function ended with exit code 3\.$"),
    "hangs": (
        lambda _: threading.Event().wait(),
        {"timeout": 1},
        "no sign of life for",
    ),
    "memory": (lambda tf: tf.ones((500, 10**6)), {"memory": 500}, "ran out of "),
    "cannot travel": (lambda _: threading.Lock(), {}, "pickle"),
}


@pytest.mark.parametrize("case", FAILS)
def test_a_function_that_fails_is_a_sentence(case):
    function, limits, said = FAILS[case]
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
