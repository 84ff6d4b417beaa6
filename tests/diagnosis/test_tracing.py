"""Functions that TensorFlow traces again and again, seen and stopped."""

import pytest

import perfkit
from perfkit.diagnosis.tracing import Traced, Tracing


@pytest.fixture(scope="module")
def seen():
    return perfkit.fresh(watched)


def watched(tf):
    from perfkit.diagnosis import tracing
    from perfkit.diagnosis.tracing import Tracing

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
        told = traces.note()["functions"], traces.anew()
        traces.begin()
        return told

    counted, anew = use("as given")
    tracing.fix(anew)
    traces.seen.clear()
    return counted, anew, use("fixed")[0]


def test_each_new_value_and_shape_and_function_is_a_trace(seen):
    counted, _, _ = seen
    assert counted == {"numbered": 3, "shaped": 3, "<lambda>": 3}


def test_what_changed_is_told_of_each_argument(seen):
    _, anew, _ = seen
    assert anew["numbered"]["changed"] == {"number": "value"}
    assert anew["shaped"]["changed"] == {"x": "shape"}
    assert anew["shaped"]["because"][0] == "x: float32[1], then float32[2]"
    assert [n for n, known in anew.items() if known["made_anew"]] == ["<lambda>"]


def test_with_fixed_signatures_little_is_traced_anew(seen):
    # A shape is left open at the second one that comes, and traced for that once more.
    _, _, fixed = seen
    assert fixed == {"shaped": 1}


def test_one_trace_more_leaves_open_whether_they_go_on():
    step = Traced("step", ("train.py", 1), 1, {}, 0.1)
    seldom = Traced("validate", ("train.py", 9), 2, {}, 0.1)
    assert not Tracing([step], ready=1).undecided
    assert Tracing([step, step, seldom], ready=1).undecided
    assert not Tracing([step, step, seldom, step], ready=1).undecided
