import pytest

from perfkit.machines.compare import compare
from tests.diagnosis.diagnosed import diagnosis
from tests.findings import made, parts
from tests.machines import pairs


@pytest.mark.parametrize("word", ["recipe", "seed", "data", "model"])
def test_another_job_gets_no_word_on_speed(word):
    one = pairs.passport()
    trainings = tuple(pairs.changed(t, job=t.job | {word: 7}) for t in one.trainings)
    found = compare(one, pairs.changed(pairs.one_core(), trainings=trainings))
    assert found.verdict == "not the same job"
    assert f"{word}: " in found.headline
    assert not any(w in found.headline for w in ("slower", "faster", "×"))
    assert all(work.speed is None and not work.changes for work in found.works)
    assert found.advice == ()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("batch", 64, "batch: 32 on A, 64 on B"),
        ("weights", 999, "weights: 1,032 on A, 999 on B"),
    ],
)
def test_one_training_that_is_another_job_leaves_the_others(field, value, said):
    slow = pairs.onednn_off()
    first, *rest = slow.trainings
    odd = pairs.changed(first, **{field: value})
    found = compare(pairs.passport(), pairs.changed(slow, trainings=(odd, *rest)))
    assert found.verdict == "slower"
    assert found.works[0].speed is None
    assert any(said in sentence for sentence in found.because)


def test_another_tensorflow_is_the_machine_and_is_said():
    versions = pairs.MACHINE.versions | {"tensorflow": "2.16.1"}
    other = pairs.passport({}, pairs.changed(versions=versions))
    found = compare(pairs.passport(), other)
    assert found.verdict == "no difference shown"
    assert "TensorFlow 2.21.0 on A, 2.16.1 on B" in found.because[0]
    assert "tensorflow" in [one.what for one in found.differences]
    # Another precision is another training and weights that one tells are not.
    one = pairs.passport()
    mixed = pairs.each(one.trainings, dtype="mixed_bfloat16")
    found = compare(one, pairs.changed(one, trainings=mixed))
    assert all(work.speed is None for work in found.works)
    assert "No training was measured on both" in found.headline
    unknown = pairs.each(one.trainings, weights=None)
    found = compare(one, pairs.changed(one, trainings=unknown))
    assert found.verdict == "no difference shown"


def test_two_findings_of_one_experiment_are_compared_by_variant():
    rates = {"naive": 1000.0, "prefetched": 1900.0}
    slow = {name: rate / 2 for name, rate in rates.items()}
    found = compare(made.finding(rates, rounds=5), made.finding(slow, rounds=5))
    assert found.verdict == "slower"
    assert [work.name for work in found.works] == ["naive", "prefetched"]
    assert all(abs(work.speed.ratio - 0.5) < 0.03 for work in found.works)
    assert "not taken apart" in repr(found)
    assert "`perfkit passport`" in found.next[0]


@pytest.mark.parametrize(
    "fields", [{"experiment": "convolution"}, {"parameters": {"image_side": 512}}]
)
def test_findings_of_other_questions_are_not_the_same_job(fields):
    found = compare(made.finding(), made.finding(**fields))
    assert found.verdict == "not the same job"
    assert found.works == ()


def test_two_machines_are_compared_microbenchmark_by_microbenchmark():
    fast = {n: (2 * rate, *rest) for n, (rate, *rest) in parts.RATES.items()}
    found = compare(parts.finding(rounds=5), parts.finding(fast, rounds=5))
    assert [one.name for one in found.microbenchmarks] == list(parts.RATES)
    assert all(abs(one.speed.ratio - 2) < 0.1 for one in found.microbenchmarks)
    assert found.verdict == "not measured"
    assert f"of {len(fast)} parts B is faster in {len(fast)}" in found.headline


def test_two_diagnoses_of_one_training_are_compared():
    one = diagnosis()
    found = compare(one, one)
    assert found.works[0].speed.ratio == 1
    assert found.verdict in ("no difference shown", "too noisy to say")
    names = ("median_s", "low", "high")
    step = {name: 3 * getattr(one.step, name) for name in names}
    slow = pairs.changed(one, step=pairs.changed(one.step, **step))
    assert compare(one, slow).verdict == "slower"
    assert compare(one, pairs.changed(one, training="another")).verdict == (
        "not the same job"
    )
