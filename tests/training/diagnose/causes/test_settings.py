import tensorflow as tf

import perfkit
from perfkit.training.diagnose.causes import applicable
from perfkit.training.diagnose.causes.steps import EAGER, THREADS
from perfkit.training.diagnose.facts import Facts
from tests.training.diagnose.causes.offered import applied, named, offered

DATA = tf.data.Dataset


def set_wrong(tf):
    """Set what slows, with what others would have taken: all that can be set."""
    import os

    tf.config.threading.set_intra_op_parallelism_threads(77)
    os.environ["TF_NUM_INTEROP_THREADS"] = "78"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "79")
    tf.config.run_functions_eagerly(True)
    tf.debugging.enable_check_numerics()
    tf.data.experimental.enable_debug_mode()


def seen_and_left_off(tf):
    from perfkit.training.diagnose import settings

    before = settings.read_settings()
    set_wrong(tf)
    return before, settings.read_settings()


def left_off_before(tf):
    import ctypes
    import os

    from perfkit.training.diagnose import settings

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
    return settings.read_settings(), told


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
    }


def test_what_is_left_off_cannot_be_set():
    here, variables = perfkit.fresh(left_off_before)
    assert here == {}
    # Whoever reads them back in Python finds them, and TensorFlow does not.
    assert variables == [("79", 0), ("78", 0)]


def test_eager_functions_are_left_off_in_a_loop_alone():
    known = {"eager": ["tf.config.run_functions_eagerly(True)"]}
    # In fit the change of that name undoes both ways to be eager.
    assert named(EAGER, settings=known) == {}
    facts = Facts(settings=known, loop=True)
    changes, untested = applicable(facts)
    assert [one.name for one in changes if one.cause == "eager"] == ["graph"]
    assert "eager" not in untested


def test_threads_of_a_pipeline_are_as_many_as_cores():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 77
    given = DATA.range(9).batch(3).with_options(options)
    (change,), made = applied(THREADS, given)
    assert "private_threadpool_size = 77" in change.fix
    assert made.options().threading.private_threadpool_size == 0
    assert len(list(made)) == 3
    assert offered(THREADS, DATA.range(9)) == []
