import subprocess
import sys

from perfkit.training.diagnose.steps import Steps, steps
from tests.engine.scripted import Seconds


def slow(clock, waits):
    for wait in waits:
        clock.now += wait
        yield wait


def test_what_it_says_names_both_shares():
    clock = Seconds()
    marked = Steps(slow(clock, [1.0, 0.003, 0.003]), clock)
    for _ in marked:
        clock.now += 0.001
    assert repr(marked).splitlines() == [
        "2 steps, 4 ms each:",
        "waiting for input       3 ms    75%",
        "body of the loop        1 ms    25%",
        "The first step took 1 s and does not count.",
    ]


def test_a_loop_that_is_left_early_keeps_its_last_step():
    clock = Seconds()
    marked = Steps(slow(clock, [0.5, 0.25, 0.25, 0.25]), clock)
    for number, _ in enumerate(marked):
        clock.now += 0.25
        if number == 2:
            break
    assert (marked.count, marked.input_s, marked.body_s) == (2, 0.5, 0.5)


def test_epochs_over_the_same_mark_add_up():
    marked = steps([1, 2, 3])
    assert [batch for _ in range(2) for batch in marked] == [1, 2, 3] * 2
    assert marked.count == 5
    assert len(marked) == 3


def test_marking_steps_loads_no_numerical_library():
    code = (
        "import sys, perfkit; list(perfkit.steps([1])); "
        "print({'numpy', 'tensorflow', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
