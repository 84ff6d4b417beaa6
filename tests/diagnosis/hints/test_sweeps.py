"""Loops that compare settings, with one model and with many."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

MAKER = """
def made():
    model = keras.Sequential([])
    model.compile("adam", "mse")
    return model
"""
ONE = MAKER + "model = made()\n"
KNOWN = [
    (
        ONE + "for size in (32, 64):\n    model.fit(x, y, batch_size=size) # here",
        "The same model is trained on",
        MAKER + "for size in (32, 64):\n    keras.utils.clear_session()\n"
        "    model = made()\n    model.fit(x, y, batch_size=size)",
    ),
    (
        ONE
        + "for size in (32, 64):\n    data = d.batch(size)\n    model.fit(data) # here",
        "The same model is trained on",
        # More and more is learnt, of other data each time.
        ONE + "for part in parts:\n    model.fit(part, batch_size=32)",
    ),
    (
        ONE + "for rate in (0.1, 0.2):\n    model.compile(SGD(rate))\n"
        "    model.fit(x) # here",
        "The same model is trained on",
        ONE + "for rate in (0.1, 0.2):\n    model.set_weights(start)\n"
        "    model.compile(SGD(rate))\n    model.fit(x)",
    ),
    (
        ONE + "for size in (32, 64):\n    model.fit(x, y, batch_size=size) # here",
        "The same model is trained on",
        ONE + "for epoch in range(9):\n    model.fit(x, initial_epoch=epoch)",
    ),
    (
        MAKER
        + "for size in sizes:\n    m = made() # here\n    m.fit(x, batch_size=size)",
        "keeps a record of every model",
        MAKER.replace("    model =", "    clear_session()\n    model =")
        + "for size in sizes:\n    m = made()\n    m.fit(x, batch_size=size)",
    ),
    (
        "for n in sizes:\n    m = keras.Sequential([Dense(n)]) # here\n    m.fit(x)",
        "keeps a record of every model",
        # The parts of one model.
        "for n in sizes:\n    part = keras.Sequential([Dense(n)])\n    kept += [part]",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_what_a_sweep_carries_over_is_seen(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)
