import math

import numpy as np
import pytest

import perfkit
from perfkit.engine.tick import REFUSED
from perfkit.errors import BadParameterError
from perfkit.questions.mixed_precision import MixedPrecision, foresee, work
from perfkit.questions.mixed_precision import verdict as meaning
from perfkit.questions.mixed_precision.verdict import CURVE, SCALE, Layer, pairs
from perfkit.questions.mixed_precision.work import expectations, too_slow
from perfkit.questions.runs import run
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import GROUPS, NO_TF32, PRECISIONS, Hardware
from tests.questions import races
from tests.questions.batches import driven, tried
from tests.questions.races import sayings

CPU = Hardware(instructions=("avx512f", "avx512_bf16"))
GPU = Hardware(instructions=(), gpu="NVIDIA Thing", capability=(8, 0))


def learnt(precision, losses, seed=1, every=6):
    """A training outside the rounds that told its losses."""
    curve = {"precision": precision, "seed": seed, "every": every, "losses": losses}
    return tried(f"learning in {precision}", **{CURVE: curve})


def scaled(scales):
    return tried("the loss scale", **{SCALE: {"model": "dense", "scales": scales}})


def measured(steps, *, held=None, notes=None, here=CPU, **more):
    """A run in which a step of each precision takes the seconds that are given."""
    asked = [PRECISIONS[name] for name in steps]
    return races.measured(
        {name: 64 / step for name, step in steps.items()},
        {one.name: one.against for one in asked},
        told={n: {"memory": {"resident": size}} for n, size in (held or {}).items()},
        notes={"expected": expectations(asked, here)} | (notes or {}),
        **more,
    )


verdict, because = sayings("mixed-precision")
FASTER = {"float32": 0.010, "mixed_bfloat16": 0.005, "float64": 0.040}


def test_every_precision_is_held_against_the_float32_of_the_same_machine():
    asked = MixedPrecision()
    assert tuple(asked.make_variants()) == GROUPS["precisions"]
    assert all(one.against == "float32" for one in asked.make_variants().values())
    assert asked.baseline == next(iter(asked.make_variants())) == "float32"
    variants = MixedPrecision(variants="lesser machine").make_variants()
    assert variants["mixed_bfloat16 without AMX"].against == "float32 without AMX"
    assert variants["mixed_bfloat16"].against == "float32"
    alone = MixedPrecision(variants="mixed_bfloat16 on plain AVX-512").make_variants()
    assert alone["mixed_bfloat16 on plain AVX-512"].against == "float32"


def test_without_a_gpu_that_tensorflow_sees_tf32_is_shown_with_the_reason(monkeypatch):
    monkeypatch.setattr(formats, "read_hardware", lambda: CPU)
    variants = MixedPrecision().make_variants()
    assert variants[NO_TF32].unavailable.startswith("needs a GPU")
    assert [one.name for one in variants.values() if one.unavailable] == [NO_TF32]
    monkeypatch.setattr(formats, "read_hardware", lambda: GPU)
    assert not any(one.unavailable for one in MixedPrecision().make_variants().values())


def test_a_bad_model_is_refused():
    with pytest.raises(BadParameterError, match="model is 'huge'"):
        foresee("huge")


@pytest.mark.parametrize(
    ("here", "headline"),
    [
        (CPU, "No precision is sure to be faster than float32 on this hardware."),
        (GPU, 'Expect "mixed_bfloat16" to be faster than float32 here.'),
    ],
)
def test_what_is_expected_is_said_with_its_reason_and_the_layers(here, headline):
    asked = [PRECISIONS[name] for name in ("float32", "mixed_bfloat16", "float64")]
    layers = [
        {"computes": "bfloat16", "name": name, "inputs": i, "outputs": 8, "products": p}
        for name, i, p in (("first", 3, 100), ("second", 8, 300))
    ]
    found = meaning.beforehand(
        {"expected": expectations(asked, here), "layers": layers}
    )
    assert found.headline == headline
    assert '"float64" slower' in found.much
    one, two, three = found.because
    assert one.startswith('Of "mixed_bfloat16" expect: ')
    assert two.startswith('Of "float64" expect: slower, because')
    assert three.startswith("By shapes, 75 % of the multiplications")
    assert three.endswith('"first" has 3 inputs, no multiple of 8.')


def test_a_precision_that_would_be_the_whole_run_is_refused_with_its_time():
    found = too_slow({"float32": 0.02, "mixed_float16": 6.0, "float64": 0.08})
    assert list(found) == ["mixed_float16"]
    said = "takes about 6 s a step, where float32 takes 20"
    assert found["mixed_float16"].startswith(said)
    # What is merely slow is timed.
    for usual, slow in ((0.001, 0.3), (2.0, 15.0)):
        assert too_slow({"float32": usual, "mixed_float16": slow}) == {}
    assert too_slow({"float32": 0.6}) == too_slow({}) == {}


def test_the_fastest_precision_is_named_with_what_to_type_and_no_imitation():
    found = verdict(measured(FASTER))
    assert (found.winner, found.headline) == ("mixed_bfloat16", "Train with bfloat16.")
    assert '2.0 times as fast as "float32": 12,800 instead of 6,400' in found.much
    assert found.sure == "sure"
    (edit,) = found.edits
    assert 'set_dtype_policy("mixed_bfloat16")' in edit.new
    assert 'set_dtype_policy("float32")' in edit.old
    assert '`dtype="float32"`' in found.next
    # Nothing was learnt.
    assert "not known yet" in found.warnings[0]
    steps = FASTER | {"mixed_bfloat16 on plain AVX-512": 0.001}
    assert verdict(measured(steps)).winner == "mixed_bfloat16"


def test_expected_stands_against_seen_and_a_gpu_is_told_what_tf32_hides():
    said = because(measured(FASTER))
    assert 'Expected of "float64": slower, because a number takes twice' in said
    assert "Seen: slower, as expected." in said
    assert 'Expected of "mixed_bfloat16": open, because the processor has' in said
    on_gpu = because(measured({"float32": 0.01, "mixed_float16": 0.02}, here=GPU))
    assert "Seen: slower, not as expected." in on_gpu
    steps = {"float32": 0.010, NO_TF32: 0.020, "mixed_float16": 0.005}
    said = because(measured(steps, here=GPU))
    assert f'Against "{NO_TF32}", "mixed_float16" reaches 4.0' in said
    assert 'the rate: faster. TF32 is on by default, in "float32" too.' in said
    assert because(measured(FASTER)).count("TF32") == 0


def test_memory_is_what_was_measured():
    held = {"float32": 100e6, "mixed_bfloat16": 80e6, "float64": 100e6}
    said = because(measured(FASTER, held=held))
    assert '80 MB in "mixed_bfloat16", 0.80 times the 100 MB of float32.' in said
    assert "1.00 times the 100 MB of float32, and the trials of the two overlap" in said


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
    (pair,) = pairs(learning("mixed_bfloat16", added, seeds))
    assert pair.alike == alike


def test_the_difference_of_pairs_of_a_seed_has_the_interval_of_student():
    (pair,) = pairs(learning("mixed_bfloat16", (0.01, 0.03, 0.05)))
    assert pair.difference == pytest.approx(0.03)
    # 4.3027 is the 97.5 % point of Student's t with two degrees of freedom.
    assert pair.half_width == pytest.approx(4.3027 * 0.02 / math.sqrt(3), rel=1e-4)
    assert pair.seeds_differ == pytest.approx(0.2)
    assert pair.steps == (6, 12, 18)
    alone = learnt("float32", [9.0, 9.0], 2), learnt("mixed_float16", [1.0, 1.0], 3)
    both = learnt("float32", [2.0, 1.0], 1), learnt("mixed_float16", [2.0, 1.0], 1)
    (pair,) = pairs((*alone, *both))
    assert pair.seeds == (1,)
    assert np.all(pair.apart == 0)


SAME, OTHERS = (0.001, 0.0, 0.0), (0.5, 0.51, 0.5)


def test_the_headline_says_whether_the_winner_learns_the_same():
    found = verdict(measured(FASTER, extra=learning("mixed_bfloat16", SAME)))
    assert found.headline == "Train with bfloat16: it learns the same."
    assert found.warnings == ()
    found = verdict(measured(FASTER, extra=learning("mixed_bfloat16", OTHERS)))
    assert found.headline.startswith("Keep float32: bfloat16 is faster, but its losses")
    assert found.much.startswith("With bfloat16 it runs 2.0 times as fast")
    assert (found.edits, found.winner) == ((), "mixed_bfloat16")
    # The next one is advised where the fastest learns something else.
    timed = {"float32": 0.01, "mixed_float16": 0.005, "mixed_bfloat16": 0.006}
    same = learning("mixed_bfloat16", SAME)
    both = (*learning("mixed_float16", OTHERS), *(t for t in same if "b" in t.variant))
    found = verdict(measured(timed, extra=both))
    assert found.headline.startswith("Train with bfloat16: ")
    assert found.winner == "mixed_bfloat16"


@pytest.mark.parametrize(
    ("losses", "others", "said"),
    [
        ([2.0, 1.5, None], 0, "In 1 pair of trainings the loss of"),
        # One that is lost at once is no row, whatever other seeds did.
        ([None, None, None], 0, "The loss of"),
        ([None, None, None], 1, "In 1 pair of trainings the loss of"),
    ],
)
def test_a_loss_that_is_no_number_is_told(losses, others, said):
    trials = [learnt("float32", [2.0, 1.5, 1.0], seed=s) for s in range(2)]
    trials += [learnt("mixed_float16", losses, seed=0)]
    trials += [learnt("mixed_float16", [2.0, 1.5, 1.0], seed=1)] * others
    (pair,) = pairs(trials)
    assert pair.alike == "lost"
    found = verdict(measured({"float32": 0.01, "mixed_float16": 0.005}, extra=trials))
    assert "its loss became NaN" in found.headline
    assert f'{said} "mixed_float16" became NaN.' in found.because


@pytest.mark.parametrize(
    "note",
    [
        *(None, 3, {}, []),
        {"precision": "float32", "seed": 1, "every": 0, "losses": [1]},
        {"precision": "float32", "seed": 1, "every": 1, "losses": [math.nan]},
        {"model": "dense", "scales": [1.0, math.inf], "resident": math.nan},
    ],
)
def test_a_note_that_is_no_curve_is_none(note):
    spoiled = tried("x", **{CURVE: note, SCALE: note, "memory": note})
    assert meaning.curves([spoiled]) == ()
    assert meaning.scale([spoiled]) is None
    assert meaning.memory([spoiled]) == {}


def test_skipped_steps_are_those_that_halved_the_scale():
    found = meaning.scale([scaled([8.0, 8.0, 16.0, 8.0, 16.0, 32.0, 16.0])])
    assert found.skipped == (3, 6)
    said = because(measured(FASTER, extra=[scaled([8.0, 16.0, 8.0])]))
    assert "went from 8 up to 16: 1 of 2 steps were skipped (at step 2)" in said


def names_tried(measured, **parameters):
    asking = MixedPrecision(**parameters).tries(measured)
    return [one.variant for one in driven(asking, lambda wanted: tried(wanted.name))]


def test_every_timed_precision_learns_with_one_seed_before_the_next_and_no_other():
    steps = FASTER | {"mixed_float16": 0.02}
    names = names_tried(measured(steps), seeds=2)
    first, second = names[:5], names[5:]
    assert first[-1] == "the loss scale"
    assert all(name.endswith("seed 1") for name in first[:4])
    assert all(name.endswith("seed 2") for name in second)
    assert len(second) == 4
    names = names_tried(measured(FASTER), seeds=1)
    assert not any("in mixed_float16" in name for name in names)
    assert names_tried(measured(FASTER), seeds=0) == []


def test_all_precisions_begin_with_the_same_weights_and_see_the_same_examples():
    def losses(name):
        def look(tf):
            notes = [n.value for n in work.learning("tiny-dense", name, 5) if has(n)]
            return notes[-1]["losses"]

        return perfkit.fresh(look)

    found = {name: losses(name) for name in ("float32", "float64", "mixed_bfloat16")}
    assert len(found["float32"]) == work.STEPS // work.BETWEEN
    assert found["float32"][-1] < 0.7 * found["float32"][0]
    assert found["float64"] == pytest.approx(found["float32"], rel=1e-3)
    assert found["mixed_bfloat16"] == pytest.approx(found["float32"], rel=0.05)
    assert found["mixed_bfloat16"] != found["float32"]


def has(yielded):
    return getattr(yielded, "name", "") == CURVE


@pytest.mark.measures
def test_a_run_times_two_precisions_and_lets_them_learn(tmp_path):
    asked = {"model": "tiny-dense", "variants": "mixed_bfloat16", "seeds": 1}
    found = run("mixed-precision", **asked, budget=8, folder=tmp_path)
    assert {t.variant for t in found.timings} == {"float32", "mixed_bfloat16"}
    assert list(found.notes["expected"]) == ["mixed_bfloat16"]
    assert REFUSED not in found.notes or found.notes[REFUSED] == {}
    assert [pair.precision for pair in pairs(found.trials)] == ["mixed_bfloat16"]
    assert meaning.memory(found.trials)["float32"].value > 0
    assert "Losses of " in " ".join(found.verdict.because)


def layer(**more):
    usual = {"name": "a", "computes": "bfloat16", "inputs": 8, "outputs": 16}
    return Layer(**usual | {"products": 100} | more)


def test_a_network_is_looked_at_layer_by_layer_but_for_its_first_and_last():
    def look(tf):
        PRECISIONS["mixed_bfloat16"].choose()
        return [vars(one) for one in meaning.layers(MODELS["small-cnn"].build())]

    small_cnn = meaning.layers_of({"layers": perfkit.fresh(look)})
    # A place of the output takes a kernel's worth of multiplications.
    work = [32 * 32 * 9 * 3 * 32, 16 * 16 * 9 * 32 * 64, 4096 * 128, 128 * 10]
    assert [(a.inputs, a.outputs, a.products, a.hindrance) for a in small_cnn] == [
        (3, 32, work[0], "has 3 inputs, no multiple of 8"),
        (32, 64, work[1], ""),
        (64 * 8 * 8, 128, work[2], ""),
        (128, 10, work[3], "computes in float32"),
    ]
    assert meaning.share(small_cnn) == (work[1] + work[2]) / sum(work)


def test_a_layer_gains_in_16_bits_and_whole_blocks():
    sides = {"inputs": 3, "outputs": 1001}
    assert layer().hindrance == ""
    assert layer(computes="float64").hindrance == "computes in float64"
    words = "has 3 inputs and 1,001 outputs, no multiple of 8"
    assert layer(**sides).hindrance == words


@pytest.mark.parametrize(
    "note", [None, 3, [None], [{}], [{"name": 1}], [{**vars(layer()), "inputs": -1}]]
)
def test_a_note_that_is_no_list_of_layers_is_none(note):
    assert meaning.layers_of({"layers": [vars(layer())]}) == (layer(),)
    assert meaning.layers_of({"layers": note}) == ()
    assert meaning.share(()) is None
