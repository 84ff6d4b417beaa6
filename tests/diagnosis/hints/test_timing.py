"""Clocks around work that the device may not have finished."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

START = "start = time.perf_counter()\n"
STOP = "took = time.perf_counter() - start"
STEP = "@tf.function\ndef step(x): pass\n"
KNOWN = [
    (
        START + "y = model(x)\n" + STOP + " # here",
        START + "y = model(x)\ny.numpy()\n" + STOP,
    ),
    (
        STEP + START + "for x in d:\n    step(x)\n" + STOP + " # here",
        STEP + START + "for x in d:\n    loss = step(x)\nfloat(loss)\n" + STOP,
    ),
    (
        "start = time.time()\ny = tf.matmul(a, b)\nprint(time.time() - start) # here",
        # What it prints brings the result.
        "start = time.time()\nmodel.fit(x)\nprint(time.time() - start)",
    ),
    (
        "def f():\n    a = time.time()\n    model(x)\n    b = time.time() - a # here",
        "def f():\n    a = time.time()\n    train()\n    return time.time() - a",
    ),
    (
        START + "y = model(x)\nend = time.perf_counter() # here\nprint(end - start)",
        START + "y = model(x)\nfloat(y)\nend = time.perf_counter()\nprint(end - start)",
    ),
    (
        "def go(): pass\n" + START + "model(x)\n" + STOP + " # here",
        # Another function may wait for it.
        "def go(): pass\n" + START + "model(x)\ngo()\n" + STOP,
    ),
    (
        START + "model(x)\n" + STOP + " # here",
        START + "y = model(x)\ntf.test.experimental.sync_devices()\n" + STOP,
    ),
]


@pytest.mark.parametrize(("mistake", "right"), KNOWN)
def test_a_clock_that_does_not_wait_is_seen(mistake, right):
    only_here(mistake, "a call returns before its work is done")
    nothing_in(right)
