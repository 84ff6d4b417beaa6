import perfkit
from perfkit.training.diagnose import settings
from perfkit.training.diagnose.causes import applicable
from perfkit.training.diagnose.causes.steps import EAGER
from perfkit.training.diagnose.facts import Facts
from tests.training.diagnose.causes.offered import named


def set_wrong(tf):
    """Set what slows, with what others would have taken: all that can be set."""
    tf.config.threading.set_intra_op_parallelism_threads(77)
    tf.config.threading.set_inter_op_parallelism_threads(78)
    tf.config.run_functions_eagerly(True)
    tf.debugging.enable_check_numerics()
    tf.data.experimental.enable_debug_mode()


def seen_and_left_off(tf):
    before = settings.read_settings()
    set_wrong(tf)
    return before, settings.read_settings()


def left_off_before(tf):
    for cause in {one.cause for one in settings.SETTINGS}:
        settings.leave_off(cause)
    set_wrong(tf)
    return settings.read_settings()


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
            "tf.config.threading.set_inter_op_parallelism_threads(78)",
        ],
    }


def test_what_is_left_off_cannot_be_set():
    assert perfkit.fresh(left_off_before) == {}


def test_eager_functions_are_left_off_in_a_loop_alone():
    known = {"eager": ["tf.config.run_functions_eagerly(True)"]}
    # In fit the change of that name undoes both ways to be eager.
    assert named(EAGER, settings=known) == {}
    changes, untested = applicable(Facts(settings=known, loop=True))
    assert [one.name for one in changes if one.cause == "eager"] == ["graph"]
    assert "eager" not in untested
