import math

import numpy as np
import pytest

import perfkit
from perfkit.engine.measurement import Measurement
from perfkit.engine.trial import REFUSED
from perfkit.findings.reading import note_as
from perfkit.questions import mixed_precision, result_of
from perfkit.questions.mixed_precision import (
    CURVE,
    Curve,
    MixedPrecision,
    expectations,
    too_slow,
)
from perfkit.questions.runs import run
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.precision import NO_TF32, PRECISIONS, Hardware
from tests.questions import races
from tests.questions.batches import tried
from tests.questions.races import sayings

CPU = Hardware(instructions=("avx512f", "avx512_bf16"))


def learnt(precision, losses, seed=1, every=6):
    """A training outside the rounds that told its losses."""
    curve = {"precision": precision, "seed": seed, "every": every, "losses": losses}
    return tried(f"learning in {precision}", **{CURVE: curve})


def measured(steps, *, held=None, notes=None, **more):
    """A run in which a step of each precision takes the seconds that are given."""
    asked = [PRECISIONS[name] for name in steps]
    return races.measured(
        {name: 64 / step for name, step in steps.items()},
        dict.fromkeys(steps, "float32"),
        told={n: {"memory": {"resident": size}} for n, size in (held or {}).items()},
        notes={"expected": expectations(asked, CPU)} | (notes or {}),
        **more,
    )


def result(trials=(), **notes):
    """The record of a run with these trials and notes, and no other."""
    run = Measurement(variants=(), trials=tuple(trials), notes=notes)
    return MixedPrecision().result(run)


verdict = sayings("mixed-precision")
FASTER = {"float32": 0.010, "mixed_bfloat16": 0.005, "float64": 0.040}


def test_every_precision_is_held_against_float32(monkeypatch):
    monkeypatch.setattr(formats, "read_hardware", lambda: CPU)
    variants = MixedPrecision().make_variants()
    assert tuple(variants) == tuple(PRECISIONS)
    assert {one.against for one in variants.values()} == {"float32"}
    # Without a GPU that TensorFlow sees TF32 is shown with the reason.
    assert [one.name for one in variants.values() if one.unavailable] == [NO_TF32]
    assert variants[NO_TF32].unavailable.startswith("needs an NVIDIA GPU")


def test_a_precision_that_would_be_the_whole_run_is_refused_with_its_time():
    found = too_slow({"float32": 0.02, "mixed_float16": 6.0, "float64": 0.08})
    assert list(found) == ["mixed_float16"]
    said = "takes about 6 s a step, where float32 takes 20"
    assert found["mixed_float16"].startswith(said)
    # What is merely slow is timed.
    for usual, slow in ((0.001, 0.3), (2.0, 15.0)):
        assert too_slow({"float32": usual, "mixed_float16": slow}) == {}
    assert too_slow({"float32": 0.6}) == too_slow({}) == {}


def test_the_fastest_precision_is_named_with_what_to_type():
    found = verdict(measured(FASTER))
    assert (found.winner, found.headline) == ("mixed_bfloat16", "Train with bfloat16.")
    assert 'set_dtype_policy("mixed_bfloat16")' in found.edits[0].new
    # Nothing was learnt.
    assert "does not show whether it learns" in found.warnings[0]


def test_what_the_hardware_lets_expect_is_said():
    said = verdict(measured(FASTER)).because
    assert 'Expected of "float64": slower, because each number' in said[-1]


LOSS = "Loss of {}, minus that of float32"
USUAL = {1: [2.0, 1.5, 1.0], 2: [2.1, 1.6, 1.1], 3: [1.9, 1.4, 0.9]}


def learning(precision, added, seeds=(1, 2, 3)):
    """Trainings of float32, and the same with something added to their last loss."""
    trials = [learnt("float32", USUAL[seed], seed) for seed in seeds]
    for seed in seeds:
        *first, last = USUAL[seed]
        trials.append(learnt(precision, [*first, last + added[seed - 1]], seed))
    return tuple(trials)


@pytest.mark.parametrize(
    ("added", "seeds", "alike"),
    [
        ((0.001, -0.001, 0.001), (1, 2, 3), "equal within rounding"),
        ((0.05, -0.05, 0.02), (1, 2, 3), "less apart than two seeds"),
        # Shown in every pair, and still less than another seed changes.
        ((0.05, 0.051, 0.05), (1, 2, 3), "less apart than two seeds"),
        ((0.15, -0.15, 0.10), (1, 2, 3), "too noisy to say"),
        ((0.50, 0.51, 0.50), (1, 2, 3), "differs"),
        ((0.50,), (1,), "too few trainings to say"),
    ],
)
def test_losses_are_held_pair_by_pair(added, seeds, alike):
    (pair,) = result(learning("mixed_bfloat16", added, seeds)).pairs
    assert pair.alike == alike


def test_only_trainings_with_the_same_seed_are_a_pair():
    alone = learnt("float32", [9.0, 9.0], 2), learnt("mixed_float16", [1.0, 1.0], 3)
    both = learnt("float32", [2.0, 1.0], 1), learnt("mixed_float16", [2.0, 1.0], 1)
    (pair,) = result((*alone, *both)).pairs
    assert pair.seeds == (1,)
    assert np.all(pair.apart == 0)


SAME, OTHERS = (0.001, 0.0, 0.0), (0.5, 0.51, 0.5)


def test_the_headline_says_whether_the_winner_learns_the_same():
    found = verdict(measured(FASTER, extra=learning("mixed_bfloat16", SAME)))
    assert found.headline == "Train with bfloat16: it learns the same."
    assert found.warnings == ()
    found = verdict(measured(FASTER, extra=learning("mixed_bfloat16", OTHERS)))
    assert found.headline.startswith("Keep float32: bfloat16 is faster, but its losses")
    assert (found.edits, found.winner) == ((), "mixed_bfloat16")
    # The next one is advised where the fastest learns something else.
    timed = {"float32": 0.01, "mixed_float16": 0.005, "mixed_bfloat16": 0.006}
    same = learning("mixed_bfloat16", SAME)
    both = (*learning("mixed_float16", OTHERS), *(t for t in same if "b" in t.variant))
    found = verdict(measured(timed, extra=both))
    assert found.headline.startswith("Train with bfloat16: ")


@pytest.mark.parametrize(
    ("losses", "others"),
    [([2.0, 1.5, None], 0), ([None, None, None], 1)],
    ids=["in the end", "at once and another seed is sound"],
)
def test_a_loss_that_is_no_number_is_told(losses, others):
    trials = [learnt("float32", [2.0, 1.5, 1.0], seed=s) for s in range(2)]
    trials += [learnt("mixed_float16", losses, seed=0)]
    trials += [learnt("mixed_float16", [2.0, 1.5, 1.0], seed=1)] * others
    found = verdict(measured({"float32": 0.01, "mixed_float16": 0.005}, extra=trials))
    assert "its loss became NaN" in found.headline
    rows = {fact.label: fact.value for fact in found.facts}
    assert rows[LOSS.format("mixed_float16")] == "became NaN"


@pytest.mark.parametrize(
    "note",
    [
        *(None, 3, [{}], [{"name": 1}]),
        {"precision": "float32", "seed": 1, "every": 0, "losses": [1]},
        {"precision": "float32", "seed": 1, "every": 1, "losses": [math.nan]},
        {"resident": math.nan},
    ],
)
def test_a_note_that_no_run_makes_is_none(note):
    assert note_as(Curve, note) is None
    assert result([tried("float32", memory=note)]).memory == {}


def test_losses_and_memory_are_rows():
    held = {"mixed_bfloat16": 80e6}
    trials = learning("mixed_bfloat16", (0.01, 0.03, 0.05))
    rows = verdict(measured(FASTER, held=held, extra=trials)).facts
    assert {row.label: row.value for row in rows} == {
        LOSS.format("mixed_bfloat16"): "+0.0300 by step 18: less apart than two seeds",
        "Loss of float32, from seed to seed": "0.900 to 1.100",
        "Memory at the peak, mixed_bfloat16": "80 MB",
    }
    # 0.03 ± 4.3027 x 0.02 / √3, by the 97.5 % point of Student's t for three pairs.
    assert rows[0].interval == "-0.0197 to +0.0797"


def test_all_precisions_begin_with_the_same_weights_and_see_the_same_examples():
    def losses(name):
        steps = mixed_precision.learning("tiny-dense", name, 5)
        return [n.value for n in steps if getattr(n, "name", "") == CURVE][-1]["losses"]

    names = ("float32", "float64", "mixed_bfloat16")
    found = perfkit.fresh(lambda tf: {n: losses(n) for n in names}, timeout=180)
    assert len(found["float32"]) == mixed_precision.STEPS // mixed_precision.BETWEEN
    assert found["float32"][-1] < 0.7 * found["float32"][0]
    assert found["float64"] == pytest.approx(found["float32"], rel=1e-3)
    assert found["mixed_bfloat16"] == pytest.approx(found["float32"], rel=0.05)
    assert found["mixed_bfloat16"] != found["float32"]


def test_a_run_times_two_precisions_and_lets_them_learn(tmp_path):
    asked = {"model": "tiny-dense", "variants": "mixed_bfloat16", "seeds": 1}
    found = run("mixed-precision", **asked, budget=8, folder=tmp_path)
    assert {t.variant for t in found.timings} == {"float32", "mixed_bfloat16"}
    assert list(found.notes["expected"]) == ["mixed_bfloat16"]
    assert REFUSED not in found.notes or found.notes[REFUSED] == {}
    numbers = result_of(found)
    assert [pair.precision for pair in numbers.pairs] == ["mixed_bfloat16"]
    assert numbers.memory["float32"].value > 0
    assert tuple(found.result["pairs"][0]["steps"]) == numbers.pairs[0].steps
