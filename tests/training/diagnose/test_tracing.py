"""Functions that TensorFlow traces again and again."""

from collections import Counter

import perfkit
from perfkit.engine.trial import READY, Tick
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.tracing import Tracing


def watched(tf):
    traces = Tracing()
    traces.look()

    def use(name):
        @tf.function
        def numbered(x, number):
            return x * tf.cast(number, tf.float32)

        @tf.function
        def shaped(x):
            return x + 1.0

        for step in range(4):
            numbered(tf.ones(3), step)
            shaped(tf.ones(step + 1))
            tf.function(lambda x: x - 1.0, autograph=False)(tf.ones(2))
            numbered(tf.ones(3), tf.constant(1))
            traces.begin() if not step else None
        told = dict(Counter(one.name for one in traces.since)), traces.anew()
        traces.begin()
        return told

    counted, anew = use("as given")
    tracing.fix(anew)
    traces.traces.clear()
    return counted, anew, use("fixed")[0]


def test_what_is_traced_anew_is_told_with_what_changed_and_can_be_stopped():
    counted, anew, fixed = perfkit.fresh(watched)
    assert counted == {"numbered": 3, "shaped": 3, "<lambda>": 3}
    assert anew["numbered"]["changed"] == {"number": "value"}
    assert anew["shaped"]["changed"] == {"x": "shape"}
    assert anew["shaped"]["because"][0] == "x: float32[1], then float32[2]"
    assert [n for n, known in anew.items() if known["made_anew"]] == ["<lambda>"]
    # A shape is left open at the second one that comes, and traced for that once more.
    assert fixed == {"shaped": 1}


def test_what_is_traced_is_told_with_the_steps_since_the_training_was_ready():
    *_, told = tracing.add_notes([Tick(4), READY, Tick(2)], Tracing(), 2)
    assert told.value == {"steps": 1, "tracing": {"traces": 0, "seconds": 0}}
