"""What people do: where each cause applies, and where nearly."""

import re
from dataclasses import replace

import pytest

from perfkit.findings.account import THREAD, Retraced, Stage
from perfkit.findings.diagnosis import WITHOUT_INPUT, WITHOUT_OBSERVERS
from perfkit.training.account.causes import CAUSES, swapped, tips
from perfkit.training.account.causes.base import WORTH, Evidence, View, cause
from perfkit.training.account.watch import EAGER_STEPS
from perfkit.training.diagnose.causes import KNOWN
from tests.training.account.accounts import account, line

BY_ID = {one.tip.cause: one for one in CAUSES}


def told(made):
    return [tip.cause for tip in tips(made, {})]


def found(cause, made):
    """The tips of one cause, whatever the others say."""
    made, more = made if isinstance(made, tuple) else (made, {})
    places = [[one.file, one.line] for one in made.lines]
    charges = {"places": places, **more}
    charges["settings"] = [[text, None] for text in more.get("settings", ())]
    for name in {*more} - {"frozen", "settings"}:
        charges[name] = [[*places[n], value] for n, value in more[name]]
    return [*BY_ID[cause].tips(View(account=made, charges=charges))]


def stages(*kinds, line=0, given=0, out=0):
    """The stages of a pipeline, the last one first."""
    path, made = "Iterator::Root", []
    for kind in kinds:
        path += f"::{kind}"
        made.append(Stage(path=path, line=line, given=given, out=out))
    return tuple(made)


SLOW_INPUT = line(20, input=4.0)
LITTLE_INPUT = line(20, input=1.0)
PREDICTS = line(set_up=3.0, computing=1.0, calls=[("predict", 300, 4.0)])
FITS = line(set_up=3.0, computing=1.0, calls=[("fit", 40, 4.0)])
EVALUATES = line(computing=4.0, calls=[("evaluate", 5, 4.0)])
WEIGHTS = line(python=3.0, calls=[("set_weights", 400, 3.0)])
SAVES = line(python=3.0, calls=[("save", 40, 3.0)])
CALLBACK = line(
    python=3.0, parts=("callback TensorBoard",), calls=[("TensorBoard", 0, 3.0)]
)
TRACED = line(set_up=3.0, traces=[("f", 30, 2.5)])
SHAPES = Retraced(name="step", count=70, seconds=3.0, because=("x: [3], then [4]",))
VALUES = replace(SHAPES, because=("beta: 0.1, then 0.2",))
EAGER_MODEL = line(
    python=3.0, computing=2.0, eager_s=2.0, calls=[("__call__", 300, 5.0)]
)
LOOPED = line(computing=4.0, operations=2000.0, types=(("Merge", 300.0),))
UNROLLED = line(computing=4.0, operations=2000.0, types=(("AddV2", 300.0),))
UPDATES = line(
    **{"computing": 6.0, "parts": ("optimizer adam",), "elements": 1_000_000},
    types=(("UnsortedSegmentSum", 1.0),),
)
BACKWARD = line(computing=4.0, backward=0.8)
FROZEN = line(computing=4.0, parts=("layer base Functional",))
COMPILES = line(set_up=4.0, calls=[("fit", 1, 4.0)])
PADS = line(60)
RECURRENT = line(61, computing=4.0, parts=("layer gru GRU",))
TEXT = line(computing=3.0, types=(("StringSplitV2", 1.0),))
SOLVES = line(computing=3.0, types=(("Svd", 1.0),))
METRIC = line(computing=3.0, parts=("metric auc",))
JACOBIAN = line(computing=3.0, calls=[("jacobian", 40, 3.0)])
EAGER = line(python=3.0, computing=3.0, eager_s=3.0)
READS = line(python=3.0, calls=[("numpy", 400, 3.0)])
COPIES = line(python=3.0, calls=[("concatenate", 400, 3.0)])
PANDAS = line(python=3.0, calls=[("iterrows", 400, 3.0)])
FILES = line(python=3.0, calls=[("read_csv", 40, 3.0)])
DENSE = line(9, computing=5.0, parts=("layer dense Dense",))
OWN = line(python=5.0)
FLOAT16 = 'keras.config.set_dtype_policy("mixed_float16")'
EAGER_MODE = "tf.config.run_functions_eagerly(True)"
DEBUG_MODE = "tf.data.experimental.enable_debug_mode()"
PYTHON_ROWS = line(input=4.0, parts=(THREAD,))
CALLS_PYTHON = line(computing=0.1, types=(("EagerPyFunc", 1.0),))
AUGMENTS = line(20, input=4.0, code="image = tf.image.random_hue(image, 0.1)")
RESIZES = line(24, input=0.5, code="image = tf.image.resize(image, [96, 96])")


def of(*lines, kinds=(), **more):
    """An account of some lines; ``kinds`` are the stages of its input."""
    made = stages(*kinds, **{k: more.pop(k) for k in ("given", "out") if k in more})
    return account(*lines, stages=made, **more)


but = replace


def calling(made, *calls):
    return but(made, calls=line(calls=calls).calls)


# Each cause where it is at work.
AT_WORK = {
    "slow-type": (of(DENSE), {"settings": [FLOAT16]}),
    "functions-run-eagerly": (of(EAGER), {"settings": [EAGER_MODE]}),
    "steps-run-eagerly": (of(EAGER), {"settings": [EAGER_STEPS]}),
    "input-runs-eagerly": (of(SLOW_INPUT), {"settings": [DEBUG_MODE]}),
    "predict-per-row": of(PREDICTS),
    "model-in-loop": (of(line(7), FITS), {"new_models": [(0, 6)]}),
    "compile-in-loop": of(TRACED, line(5, python=0.1, calls=[("compile", 40, 0.1)])),
    "fit-in-loop": of(FITS),
    "evaluated-often": of(EVALUATES),
    "weights-copied": of(WEIGHTS),
    "saved-often": of(SAVES),
    "callback": of(CALLBACK),
    "traced-again": of(TRACED),
    "model-called-eagerly": of(EAGER_MODEL),
    "loop-in-step": of(LOOPED),
    "python-in-step": of(CALLS_PYTHON, line(5, python=4.0, parts=(THREAD,))),
    "jacobian": of(JACOBIAN),
    "dense-update": of(UPDATES),
    "frozen-layers": (of(FROZEN), {"frozen": ["base"]}),
    "xla-shapes": of(COMPILES),
    "padding": (of(PADS, RECURRENT), {"padded": [(0, 0.9)]}),
    "text-in-model": of(TEXT),
    "decomposition": of(SOLVES),
    "metric": of(METRIC),
    "thrown-away": of(SLOW_INPUT, kinds=["Filter", "Map"], given=800, out=100),
    "cache-thrown-away": of(SLOW_INPUT, kinds=["FiniteTake", "MemoryCache"]),
    "iterator-anew": (of(line(7, waiting=4.0)), {"iterators": [(0, 5000)]}),
    "single-elements": of(SLOW_INPUT, kinds=["FlatMap"], out=9000),
    "python-batches": of(PYTHON_ROWS),
    "full-size": of(AUGMENTS, RESIZES),
    "map-in-turn": of(SLOW_INPUT, kinds=["Map"], out=50),
    "backward-often": (of(BACKWARD), {"backward": [(0, 10)]}),
    "input": of(SLOW_INPUT, kinds=["ParallelMapV2"]),
    "steps-are-eager": of(EAGER),
    "tensors-read": of(READS),
    "arrays-copied": of(COPIES),
    "pandas-rows": of(PANDAS),
    "files-read-again": of(FILES),
    "python-between-steps": of(OWN),
}
# And what only looks like it.
NEAR = [
    ("slow-type", of(DENSE)),
    ("functions-run-eagerly", of(EAGER)),
    ("input-runs-eagerly", of(SLOW_INPUT)),
    ("steps-run-eagerly", of(EAGER)),
    # Few calls, and calls that compute.
    ("predict-per-row", of(calling(PREDICTS, ("predict", 5, 4.0)))),
    ("predict-per-row", of(but(PREDICTS, seconds={"set-up": 1.0, "computing": 3.0}))),
    ("model-in-loop", of(line(7), FITS)),
    ("model-in-loop", (of(line(7), DENSE), {"new_models": [(0, 6)]})),
    ("compile-in-loop", of(TRACED, line(5, python=0.1, calls=[("compile", 2, 0.1)]))),
    (
        "compile-in-loop",
        of(but(TRACED, traces=()), line(5, calls=[("compile", 40, 0.0)])),
    ),
    # A model that is new needs it.
    ("compile-in-loop", (AT_WORK["compile-in-loop"], {"models": [(0, 40)]})),
    ("fit-in-loop", of(calling(FITS, ("fit", 3, 4.0)))),
    ("fit-in-loop", of(but(FITS, seconds={"computing": 4.0, "set-up": 0.1}))),
    # Then `compile` in the loop is what costs.
    (
        "fit-in-loop",
        of(
            calling(
                but(FITS, traces=TRACED.traces), ("fit", 40, 4.0), ("compile", 40, 0.0)
            )
        ),
    ),
    ("evaluated-often", of(calling(EVALUATES, ("evaluate", 40, 4.0)))),
    ("evaluated-often", of(EVALUATES, line(7, computing=14.0))),
    ("weights-copied", of(calling(WEIGHTS, ("fit", 1, 2.0), ("set_weights", 1, 1.0)))),
    ("saved-often", of(calling(SAVES, ("serve", 40, 3.0)))),
    ("callback", of(but(CALLBACK, parts=("layer dense Dense",)))),
    # Of that another one says more.
    ("callback", of(calling(CALLBACK, ("ModelCheckpoint", 0, 3.0)))),
    ("traced-again", of(but(TRACED, traces=()))),
    ("traced-again", of(calling(TRACED, ("fit", 1, 3.0)))),
    ("traced-again", of(calling(TRACED, ("compile", 40, 0.0)))),
    ("model-called-eagerly", of(but(EAGER_MODEL, eager_s=0.0))),
    (
        "model-called-eagerly",
        of(but(EAGER_MODEL, seconds={"set-up": 9.0, "Python": 1.0})),
    ),
    ("loop-in-step", of(but(UNROLLED, operations=500.0))),
    # The loop of a recurrent layer is what it is.
    ("loop-in-step", of(but(LOOPED, parts=("layer lstm LSTM",)))),
    ("loop-in-step", of(but(UNROLLED, parts=("optimizer adam",)))),
    ("python-in-step", of(CALLS_PYTHON, PYTHON_ROWS)),
    ("python-in-step", of(DENSE, line(5, python=4.0, parts=(THREAD,)))),
    ("jacobian", of(calling(JACOBIAN, ("gradient", 40, 3.0)))),
    ("dense-update", of(but(UPDATES, elements=1000))),
    ("dense-update", of(but(UPDATES, types=(("Sqrt", 1.0),)))),
    ("frozen-layers", (of(FROZEN), {"frozen": ["head"]})),
    ("frozen-layers", (of(but(FROZEN, backward=0.6)), {"frozen": ["base"]})),
    ("xla-shapes", of(but(COMPILES, traces=TRACED.traces))),
    ("xla-shapes", of(calling(COMPILES, ("fit", 40, 4.0)))),
    ("xla-shapes", of(but(COMPILES, seconds={"computing": 4.0}))),
    ("padding", (of(PADS, RECURRENT), {"padded": [(0, 0.3)]})),
    ("padding", (of(PADS, DENSE), {"padded": [(0, 0.9)]})),
    # There it belongs.
    ("text-in-model", of(but(TEXT, seconds={"input": 3.0}))),
    ("decomposition", of(but(SOLVES, types=(("MatMul", 1.0),)))),
    ("metric", of(but(METRIC, parts=("loss mse",)))),
    ("metric", of(but(METRIC, parts=("metric",)))),
    ("thrown-away", of(SLOW_INPUT, kinds=["Filter", "Map"], given=110, out=100)),
    ("thrown-away", of(SLOW_INPUT, kinds=["Shuffle", "Map"], given=800, out=100)),
    ("cache-thrown-away", of(SLOW_INPUT, kinds=["MemoryCache", "FiniteTake"])),
    ("iterator-anew", (of(line(7), SLOW_INPUT), {"iterators": [(0, 8)]})),
    ("iterator-anew", (of(line(7), LITTLE_INPUT, DENSE), {"iterators": [(0, 5000)]})),
    ("single-elements", of(SLOW_INPUT, kinds=["FlatMap"], out=20)),
    ("single-elements", of(SLOW_INPUT, kinds=["FlatMap[0]", "Generator"], out=9000)),
    ("single-elements", of(SLOW_INPUT, kinds=["FlatMap[0]", "TFRecord"], out=9000)),
    ("single-elements", of(SLOW_INPUT, kinds=["Batch"], out=9000)),
    ("python-batches", of(SLOW_INPUT)),
    # A step that calls Python is no batch.
    ("python-batches", of(line(input=0.1, python=4.0, parts=(THREAD,)))),
    ("full-size", of(AUGMENTS, but(RESIZES, line=10))),
    ("map-in-turn", of(SLOW_INPUT, kinds=["ParallelMapV2"], out=50)),
    ("backward-often", (of(BACKWARD), {"backward": [(0, 2)]})),
    ("input", of(LITTLE_INPUT, kinds=["ParallelMapV2"])),
    # Keras makes batches of arrays.
    ("input", of(SLOW_INPUT)),
    ("input", of(but(SLOW_INPUT, seconds={"computing": 4.0}))),
    ("steps-are-eager", of(but(EAGER, eager_s=0.0))),
    ("steps-are-eager", of(but(EAGER, seconds={"Python": 2.0, "computing": 1.0}))),
    # What Keras does around the steps of short epochs.
    ("steps-are-eager", of(calling(EAGER, ("fit", 1, 6.0)), line(9, computing=4.0))),
    # What takes most there is something else.
    ("tensors-read", of(calling(READS, ("fit", 1, 2.0), ("numpy", 1, 1.0)))),
    ("arrays-copied", of(calling(COPIES, ("reshape", 400, 3.0)))),
    ("pandas-rows", of(but(PANDAS, seconds={"Python": 1.0}))),
    ("files-read-again", of(but(FILES, seconds={"Python": 1.0}))),
    ("python-between-steps", of(calling(OWN, ("fit", 1, 5.0)))),
    ("python-between-steps", of(but(OWN, parts=("callback Logger",)))),
    ("python-between-steps", of(OWN, updates=0)),
    ("files-read-again", of(FILES, updates=0)),
]


def test_a_setting_is_named_where_it_is_set():
    setter = line(3)
    (tip,) = tips(
        of(setter, DENSE),
        {
            "settings": [[FLOAT16, ["train.py", 3]]],
            "places": [["train.py", 3], ["x", 9]],
        },
    )
    assert tip.do == "Train in float32: train.py, line 3"
    assert tip.lines == (0, 1)


def test_a_python_loop_in_a_step_is_said_to_be_one():
    loops, unrolled = (tips(of(made), {})[0].means for made in (LOOPED, UNROLLED))
    assert "2,000 small operations in each step." in loops
    assert "because a Python loop made each of them" in unrolled


def test_what_is_skipped_is_named_where_it_is_skipped():
    skips = line(40, input=0.5)
    for kinds in (["FiniteSkip"], ["Shard"], ["FiniteTake", "Shuffle"]):
        stages_ = stages(*kinds, "ParallelMapV2", line=1, given=1200, out=120)
        (tip, *_) = tips(account(SLOW_INPUT, skips, stages=stages_), {})
        assert (tip.cause, tip.lines[0]) == ("thrown-away", 1)
    # What a skip calls is in no trace of its own.
    top, _, names = stages(
        *("FiniteSkip", "ParallelMapV2", "TensorSlice"), line=1, given=1200, out=120
    )
    (tip, *_) = tips(account(SLOW_INPUT, skips, stages=(top, names)), {})
    assert tip.cause == "thrown-away"
    cheap = stages("FiniteSkip", "TensorSlice", line=1, given=1200, out=120)
    assert tips(account(SLOW_INPUT, skips, stages=cheap), {})[0].cause == "input"


def test_a_frozen_model_is_named_where_a_step_calls_it():
    calls = line(70, computing=0.1)
    heard = {"callers": [["train.py", 1, ["train.py", 70]]], "frozen": ["base"]}
    heard |= {"places": [["train.py", 1], ["train.py", 70]]}
    (tip,) = tips(of(FROZEN, calls), heard)
    assert (tip.cause, tip.lines) == ("frozen-layers", (1, 0))
    assert tip.share == pytest.approx(0.4)


def test_what_arguments_a_function_takes_anew_is_said_where_it_is_defined():
    defined = line(5, code="@tf.function")
    heard = {"definitions": [["train.py", 1, ["train.py", 5]]]}
    heard |= {"places": [["train.py", 1], ["train.py", 5]]}
    (tip,) = tips(of(but(TRACED, traces=(SHAPES,)), defined), heard)
    assert tip.lines == (1, 0)
    # A value comes from the line that calls it.
    (tip,) = tips(of(but(TRACED, traces=(VALUES,)), defined), heard)
    assert tip.lines == (0,)
    assert "each for other values (beta: 0.1, then 0.2)" in tip.means
    # One that is made anew in a loop is said where the loop is.
    (tip,) = tips(of(TRACED, defined), heard)
    assert tip.lines == (0,)


def test_every_cause_has_a_case_and_a_name_of_its_own():
    assert set(AT_WORK) == {cause for cause, _ in NEAR} == set(BY_ID)
    assert len(BY_ID) == len(CAUSES)


@pytest.mark.parametrize("cause", AT_WORK)
def test_a_cause_applies_where_it_is_at_work_and_its_tip_can_be_read(cause):
    tips = found(cause, AT_WORK[cause])
    assert {tip.cause for tip in tips} == {cause}
    for tip in tips:
        assert WORTH <= tip.share <= 1
        assert min(tip.lines) >= 0
        # An imperative, which a full stop may follow or a colon.
        assert re.match(r"[A-Z][a-z]+ .*[^.]$", tip.do)
        assert re.search(r"[^.]$", tip.fix)
        assert tip.means.endswith(".")
        assert tip.means.isprintable()
        assert not tip.mind or tip.mind.endswith(".")
        every = "".join((tip.do, tip.means, tip.fix, tip.mind))
        assert not set("{}") & set(every)
        assert every.count("`") % 2 == 0


@pytest.mark.parametrize(("cause", "made"), NEAR, ids=[cause for cause, _ in NEAR])
def test_a_cause_does_not_apply_to_what_only_looks_like_it(cause, made):
    assert found(cause, made) == []


@pytest.mark.parametrize("cause", CAUSES, ids=lambda one: one.tip.cause)
def test_what_a_cause_refers_to_is_something_that_a_diagnosis_tries(cause):
    assert not cause.swap or cause.swap in KNOWN
    assert cause.tip.group in {"", WITHOUT_INPUT, WITHOUT_OBSERVERS}


def test_a_healthy_training_gets_no_tip():
    dense = line(9, computing=6.0, parts=("layer dense Dense",), operations=40.0)
    conv = line(8, computing=3.0, parts=("layer conv2d Conv2D",), operations=40.0)
    adam = line(7, computing=0.8, parts=("optimizer adam",), elements=2_000_000)
    rest = line(6, python=0.2, calls=[("fit", 1, 9.9)])
    assert told(account(conv, dense, adam, rest)) == []
    assert told(account()) == []
    # A Jacobian that is taken in a graph makes one unhealthy.
    assert told(of(line(computing=6.0, parts=("jacobian",)))) == ["jacobian"]


def test_what_explains_a_line_hides_what_comes_later():
    # `predict` in a loop is Python between the steps as well.
    made = account(line(python=6.0, calls=[("predict", 300, 6.0)]))
    assert told(made) == ["predict-per-row"]
    slow = account(SLOW_INPUT, stages=stages("Map", out=50))
    assert [c for c in ("map-in-turn", "input") if found(c, slow)] == [
        "map-in-turn",
        "input",
    ]
    assert told(slow) == ["map-in-turn"]


def test_tips_are_few_and_the_largest_comes_first():
    many = [
        line(n, python=1.2 - n / 100, calls=[("save", 40, 1.0)]) for n in range(1, 9)
    ]
    few = tips(account(*many), {})
    assert len(few) == 6
    shares = [tip.share for tip in few]
    assert shares == sorted(shares, reverse=True)
    assert few[0].lines == (0,)


def test_a_tip_of_little_is_none():
    def yields(seen):
        yield Evidence(lines=seen.account.lines[:1], means="It is.", share=WORTH - 0.01)

    little = cause(do="Do it at {where}")(yields)
    assert [*little.tips(View(account=account(OWN), charges={}))] == []


def test_a_diagnosis_learns_which_changes_the_tips_are_about():
    made = account(SLOW_INPUT, stages=stages("Map", out=50))
    assert swapped(replace(made, tips=tips(made, {}))) == {"serial-map"}
    assert swapped(made) == frozenset()
