"""What is made or called anew in each round of a loop."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

KNOWN = [
    (
        "for x in d:\n    model.predict(x) # here",
        "predict sets up a loop",
        "for x in d:\n    model(x)",
    ),
    (
        "net = keras.Sequential([])\nfor x in d:\n    net.predict(x) # here",
        "predict sets up a loop",
        # Each round trains, and then looks once.
        "for k in range(9):\n    model.fit(x)\n    y = model.predict(x[:k])",
    ),
    (
        "for x in d:\n    model.predict(x) # here",
        "predict sets up a loop",
        "for model in models:\n    model.predict(x)",
    ),
    (
        "for x in d:\n    model.predict(x) # here",
        "predict sets up a loop",
        "model = LinearRegression()\nfor x in d:\n    model.predict(x)",
    ),
    (
        "for x in d:\n    @tf.function\n    def f(): pass # here\n    f()",
        "traced anew",
        "@tf.function\ndef f(): pass\nfor x in d:\n    f()",
    ),
    (
        "for x in d:\n    f = tf.function(g) # here\n    f(x)",
        "traced anew",
        # One graph for each way of working, and many steps with each.
        "for way in ways:\n    f = tf.function(way)\n    for x in d:\n        f(x)",
    ),
    (
        "for x in d:\n    tf.function(g)(x) # here",
        "traced anew",
        "graphs = {}\nfor way in ways:\n    graphs[way] = tf.function(way)",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_what_a_loop_makes_anew_is_seen(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)
