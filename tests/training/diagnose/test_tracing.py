"""Functions that TensorFlow traces again and again, and threads that wait."""

import pytest

import perfkit
from perfkit.engine.tick import READY, Tick
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.tracing import Tracing
from tests.machine.trees import grow


def watched(tf):
    from collections import Counter

    from perfkit.training.diagnose import tracing

    traces = tracing.Tracing()
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


@pytest.mark.parametrize(
    ("told", "added"),
    [
        (
            {"t1": "2000000000 500000000 7\n", "t2": "1000000000 250000000 3\n"},
            (3.0, 0.75),
        ),
        # A thread that ended meanwhile is passed over.
        ({"t1": "2000000000 500000000 7\n", "t2": ""}, (2.0, 0.5)),
        # A system that does not tell is no zero.
        ({}, None),
    ],
)
def test_all_threads_are_added_up(tmp_path, told, added):
    grow(tmp_path, {f"proc/self/task/{t}/schedstat": said for t, said in told.items()})
    assert tracing.read(tmp_path) == added


def test_what_came_between_two_readings_is_kept(monkeypatch):
    readings = iter([(1.0, 1.0), (3.0, 1.5), (5.0, 2.0)])
    monkeypatch.setattr(tracing, "read", lambda: next(readings))
    *_, told = tracing.add_notes([READY, Tick(1)], Tracing(), 1)
    assert told.value[tracing.WAITED] == {"ran_s": 2.0, "waited_s": 0.5}
