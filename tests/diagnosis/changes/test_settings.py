from operator import attrgetter
from types import SimpleNamespace

import keras
import tensorflow as tf

import perfkit
from perfkit.diagnosis import settings
from perfkit.diagnosis.change import Change, Untested
from perfkit.diagnosis.changes import resident
from perfkit.diagnosis.changes import settings as changes
from perfkit.diagnosis.facts import Facts
from tests.diagnosis.changes.offered import applied, named, offered

DATA = tf.data.Dataset


def set_wrong(tf):
    """Set what slows, with what others would have taken: all that can be set."""
    import os

    import keras

    tf.config.threading.set_intra_op_parallelism_threads(77)
    os.environ["TF_NUM_INTEROP_THREADS"] = "78"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "79")
    tf.config.run_functions_eagerly(True)
    tf.debugging.enable_check_numerics()
    tf.data.experimental.enable_debug_mode()
    tf.config.experimental.enable_op_determinism()
    keras.backend.set_floatx("float64")


def seen_and_left_off(tf):
    from perfkit.diagnosis import settings

    before = settings.here()
    set_wrong(tf)
    return before, settings.here()


def left_off_before(tf):
    import ctypes
    import os

    from perfkit.diagnosis import settings

    for cause in {one.cause for one in settings.SETTINGS}:
        settings.leave_off(cause)
    set_wrong(tf)
    variables = [
        one.variable
        for one in settings.SETTINGS
        if one.variable and one.cause == "threads"
    ]
    read = ctypes.CDLL(None).getenv
    told = [(os.environ.pop(name), read(name.encode())) for name in variables]
    return settings.here(), told


def test_what_is_set_is_seen_as_it_is_typed():
    before, seen = perfkit.fresh(seen_and_left_off)
    assert before == {}
    assert seen == {
        "eager": ["tf.config.run_functions_eagerly(True)"],
        "debugging": [
            "tf.debugging.enable_check_numerics()",
            "tf.data.experimental.enable_debug_mode()",
        ],
        "threads": [
            "tf.config.threading.set_intra_op_parallelism_threads(77)",
            'os.environ["TF_NUM_INTRAOP_THREADS"] = "79"',
            'os.environ["TF_NUM_INTEROP_THREADS"] = "78"',
        ],
        "determinism": ["tf.config.experimental.enable_op_determinism()"],
        "float64": ['tf.keras.backend.set_floatx("float64")'],
    }


def test_what_is_left_off_cannot_be_set():
    here, variables = perfkit.fresh(left_off_before)
    assert here == {}
    # Whoever reads them back in Python finds them, and TensorFlow does not.
    assert variables == [("79", 0), ("78", 0)]


def test_every_setter_has_a_name_that_this_tensorflow_has():
    roots = SimpleNamespace(tf=tf, keras=keras)
    names = [name for one in settings.SETTINGS for name in one.setters]
    assert [n for n in names if not callable(attrgetter(n)(roots))] == []


def test_the_lines_to_delete_stand_in_the_fix():
    lines = ["tf.debugging.enable_check_numerics()", "f()"]
    known = {"debugging": lines, "determinism": ["f()"], "float64": ["g()"]}
    found = named(changes.left_off, settings=known)
    # What changes a result is no defect.
    assert {one.cause: one.kind for one in found.values()} == {
        "debugging": "defect",
        "determinism": "opportunity",
        "float64": "by gain",
    }
    assert found["without debugging"].fix == f"Delete `{lines[0]}` and `f()`."


def test_what_is_about_the_pipeline_alone_explains_a_slow_input():
    def after(*lines):
        (one,) = named(changes.left_off, settings={"debugging": lines}).values()
        return one.after

    data = "tf.data.experimental.enable_debug_mode()"
    assert after(data) == "without input"
    assert after(data, "tf.debugging.enable_check_numerics()") == ""


def test_eager_functions_are_left_off_in_a_loop_alone():
    known = {"eager": ["tf.config.run_functions_eagerly(True)"]}
    # In fit the change of that name undoes both ways to be eager.
    assert named(changes.left_off, settings=known) == {}
    facts = Facts(settings=known, loop=True)
    found = list(resident.without_fit(changes.left_off(facts), facts))
    assert [one.name for one in found if isinstance(one, Change)] == ["graph"]
    assert "eager" not in {one.cause for one in found if isinstance(one, Untested)}


def test_threads_of_a_pipeline_are_as_many_as_cores():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 77
    given = DATA.range(9).batch(3).with_options(options)
    (change,), made = applied(changes.left_off, given)
    assert "private_threadpool_size = 77" in change.fix
    assert made.options().threading.private_threadpool_size == 0
    assert len(list(made)) == 3
    assert offered(changes.left_off, DATA.range(9)) == []


def test_only_what_is_parallel_may_come_in_any_order():
    parallel = DATA.range(9).map(lambda x: x, num_parallel_calls=2)
    (change,), made = applied(changes.any_order, parallel)
    assert (change.kind, change.after) == ("opportunity", "without input")
    assert made.options().deterministic is False
    (said,) = offered(changes.any_order, made)
    assert "any order" in said.why
    assert offered(changes.any_order, DATA.range(9)) == []
