"""Each hint is found in code that has the mistake, and not in code that nearly has."""

from pathlib import Path

import pytest

from perfkit.diagnosis.hints import hints, hints_in

HEALTHY = Path(__file__).resolve().parents[1] / "guilty" / "healthy"
# The mistake, a part of what is said of it, and the same without the mistake.
KNOWN = [
    ("m.compile(run_eagerly=True)", "run_eagerly", "m.compile(run_eagerly=False)"),
    (
        "TensorBoard(histogram_freq=1)",
        "histogram",
        "TensorBoard(histogram_freq=0)",
    ),
    (
        "d.map(f, num_parallel_calls=1)",
        "one element at a time",
        "d.map(f, num_parallel_calls=2)",
    ),
    (
        "d.map(lambda x: tf.py_function(f, [x], t))",
        "py_function",
        "d.map(lambda x: tf.function(f)(x))",
    ),
    ("d.batch(8).shuffle(9)", "whole batches", "d.shuffle(9).batch(8)"),
    ("d.prefetch(1).map(f)", "prefetch stands before map", "d.map(f).prefetch(1)"),
    ("for x in d:\n    m.predict(x)", "predict", "for x in d:\n    m(x)"),
    (
        "for x in d:\n    @tf.function\n    def f(): pass",
        "traced anew",
        "@tf.function\ndef f(): pass\nfor x in d:\n    f()",
    ),
    (
        "import tensorflow\nos.environ['TF_X'] = '1'",
        "when imported",
        "os.environ['TF_X'] = '1'\nimport tensorflow",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_a_mistake_is_seen_where_it_is_and_nowhere_else(mistake, said, right):
    (hint,) = hints_in(mistake)
    assert said in hint.says
    assert hint.code == mistake.splitlines()[hint.line - 1].strip()
    assert hint.grade == "not tested"
    assert hints_in(right) == ()


@pytest.mark.parametrize("path", sorted(HEALTHY.glob("*.py")), ids=lambda p: p.stem)
def test_a_healthy_training_has_no_hints(path):
    assert hints_in(path.read_text()) == ()


def has_a_mistake():
    return "model".compile(run_eagerly=True)


def test_the_source_of_a_function_is_read_and_what_has_none_tells_nothing():
    assert len(hints(has_a_mistake)) == 1
    assert hints(len) == ()
