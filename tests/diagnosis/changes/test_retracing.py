import functools

import perfkit
from perfkit.diagnosis.change import Change, Untested
from perfkit.diagnosis.changes import model, resident
from perfkit.diagnosis.facts import Facts
from tests.diagnosis.changes.offered import named


def known(changed=None, *, made_anew=False, because=()):
    return {
        "traces": 9,
        "seconds": 1.0,
        "changed": changed or {},
        "made_anew": made_anew,
        "because": list(because),
    }


of = functools.partial(named, model.retracing)


def test_a_number_is_to_become_a_tensor():
    because = ["rate: float 0.1, then float 0.2"]
    found = of(retraced={"step": known({"rate": "value"}, because=because)})
    assert list(found) == ["fixed signature"]
    assert found["fixed signature"].fix == (
        "Call `step` with rate=tf.constant(rate): each new number is traced "
        "(rate: float 0.1, then float 0.2)."
    )
    assert found["fixed signature"].after == ""
    found = of(retraced={"step": known(made_anew=True)})["fixed signature"]
    assert found.fix == "Call tf.function once for `step`, outside of the loop."


def test_shapes_that_data_cause_hang_on_the_ceiling_without_input():
    found = of(retraced={"step": known({"x": "shape"})}, open_shapes=True)
    assert {one.after for one in found.values()} == {"without input"}
    assert set(found) == {"fixed signature", "one shape"}
    assert set(of(xla=True, open_shapes=True)) == {"one shape"}
    # Nothing is changed where nothing is traced anew.
    assert of() == of(open_shapes=True) == {}


def test_a_loop_leaves_out_what_needs_fit_and_says_so():
    changes = [
        Change(name=c, cause=c, kind="defect", changes="", fix="", apply=print)
        for c in ("xla", "serial-map")
    ]
    found = list(resident.without_fit(changes, Facts(loop=True)))
    assert [one.cause for one in found if isinstance(one, Change)] == ["serial-map"]
    untested = {one.cause for one in found if isinstance(one, Untested)}
    assert untested == set(resident.NEED_FIT)
    assert list(resident.without_fit(changes, Facts())) == changes


def one_shape(tf):
    import numpy as np

    from perfkit.diagnosis.loop import in_loop

    def batches():
        for length in (3, 5, 4):
            words = np.arange(2 * length).reshape(2, length) + 1
            yield words, np.zeros(2)

    kinds = (tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.float64))
    training = in_loop(tf.data.Dataset.from_generator(batches, output_signature=kinds))
    model.one_shape(training)
    return [[x.tolist(), list(y.shape)] for x, y in training.data.as_numpy_iterator()]


def test_batches_are_padded_to_the_largest_and_keep_what_they_hold():
    shapes = perfkit.fresh(one_shape)
    assert [len(words[0]) for words, _ in shapes] == [5, 5, 5]
    assert shapes[0] == [[[1, 2, 3, 0, 0], [4, 5, 6, 0, 0]], [2]]
