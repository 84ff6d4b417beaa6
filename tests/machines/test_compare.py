import json

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError, BadParameterError
from perfkit.machine.gpu import Gpu
from perfkit.machines.comparison import held
from perfkit.machines.comparison_report import page
from perfkit.passports import passport
from tests.diagnosis.diagnosed import diagnosis
from tests.export.pages import problems
from tests.findings import made, parts
from tests.hostile import shown
from tests.hostile.texts import ATTACKS, attacked
from tests.machines import pairs


def show(found):
    """Look at an explanation in every way it can be shown."""
    figures = found.charts.values()
    texts = [repr(found), *(figure.alt for figure in figures)]
    parts = [found._repr_html_(), *(figure.svg for figure in figures)]
    shown.check(texts, parts, [page(found)])
    json.loads(found.to_json())
    assert len(found.table()) >= len(found.works)


@pytest.fixture
def files(tmp_path):
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    passport.save(pairs.passport(), one)
    passport.save(pairs.one_core(), other)
    return one, other


def test_a_guess_stands_in_the_report_in_the_chart_and_on_the_page(files):
    found = perfkit.compare(*files, guess="B, 2x, compute")
    assert found.verdict == "slower"
    assert found.headline == perfkit.compare(str(files[0]), files[1]).headline
    assert "Your guess: B, 2x, compute" in repr(found)
    assert "your guess: B, 2x, compute" in found.charts["waterfall"].alt
    assert "Your guess: B, 2x, compute" in page(found)
    show(perfkit.compare(*files, guess=ATTACKS["script"]))


def test_the_command_line_says_it_and_writes_the_page(files, tmp_path, capsys):
    out = tmp_path / "two.html"
    assert cli.main(["compare", *map(str, files), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("On B, give the process all cores; that can explain ")
    assert "Small CNN from JPEG takes 1.7 times as long on B as on A. Sure: 1.7" in said
    assert "Written: " in said
    written = out.read_text(encoding="utf-8")
    assert problems(written) == []
    assert written.count("<svg") == 3
    assert "<script" not in written


def test_what_is_no_passport_is_one_sentence(files, tmp_path, capsys):
    odd = tmp_path / "odd.json"
    odd.write_bytes(b'{"kind": "recipe", "schema": 1}')
    with pytest.raises(BadFileError, match="not a finding but a recipe"):
        perfkit.compare(files[0], odd)
    assert cli.main(["compare", str(files[0]), str(odd)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    # Nor are two of different kinds.
    with pytest.raises(BadParameterError, match="give two of a kind"):
        perfkit.compare(files[0], made.finding())
    with pytest.raises(BadParameterError, match="nothing to compare"):
        perfkit.compare(files[0], 7)
    # Two passports that share nothing are no success.
    empty = files[0].with_name("empty.json")
    passport.save(pairs.passport(trainings=(), microbenchmarks=()), empty)
    assert cli.main(["compare", str(files[0]), str(empty)]) == 1
    assert "No training was measured on both" in capsys.readouterr().out


NOTHING = {"trainings": (), "microbenchmarks": (), "samples": {}, "label": ""}


@pytest.mark.parametrize(
    "fields",
    [
        {"trainings": ()},
        {"microbenchmarks": ()},
        {"samples": {}, "phases": {}},
        {"noise_floors": {}},
        NOTHING | {"recorded": ""},
    ],
    ids=lambda fields: " ".join(fields),
)
def test_an_incomplete_passport_is_compared_as_far_as_it_goes(fields):
    odd = pairs.changed(pairs.one_core(), **fields)
    for both in ((pairs.passport(), odd), (odd, pairs.passport()), (odd, odd)):
        show(perfkit.compare(*both))


def test_what_nobody_watched_is_no_load_of_nothing():
    slow = pairs.changed(pairs.one_core(), samples={}, phases={})
    for both in ((pairs.passport(), slow), (slow, pairs.passport())):
        main = perfkit.compare(*both).main
        assert main.change("background load") is None
        assert main.change("throttling") is None
    main = perfkit.compare(pairs.passport(), pairs.one_core()).main
    assert main.change("background load").change == 0


def test_a_training_without_a_split_is_compared_as_a_whole():
    slow = pairs.one_core()
    bare = pairs.each(slow.trainings, parts=())
    found = perfkit.compare(pairs.passport(), pairs.changed(slow, trainings=bare))
    assert found.verdict == "slower"
    assert "not taken apart on both" in repr(found)
    assert found.advice == ()
    show(found)
    # Advice may be for another job than the one that differs most.
    odd = (
        pairs.changed(one, parts=()) if one.name == "small CNN from JPEG" else one
        for one in slow.trainings
    )
    found = perfkit.compare(pairs.passport(), pairs.changed(slow, trainings=tuple(odd)))
    assert found.advice
    assert found.main.changes == found.report.besides == ()
    # What was not measured is said.
    slow = pairs.one_core()
    first, *rest = slow.trainings
    gone = pairs.changed(first, seconds=None, parts=(), missing="It crashed.")
    slow = pairs.changed(slow, trainings=(gone, *rest))
    found = perfkit.compare(pairs.passport(), slow)
    assert "tiny dense: Not measured on B: It crashed." in found.because


@pytest.mark.parametrize("word", ["recipe", "seed", "data", "model"])
def test_another_job_gets_no_word_on_speed(word):
    one = pairs.passport()
    trainings = tuple(pairs.changed(t, job=t.job | {word: 7}) for t in one.trainings)
    found = perfkit.compare(one, pairs.changed(pairs.one_core(), trainings=trainings))
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
    slow = pairs.changed(slow, trainings=(odd, *rest))
    found = perfkit.compare(pairs.passport(), slow)
    assert found.verdict == "slower"
    assert found.works[0].speed is None
    assert any(said in sentence for sentence in found.because)


def test_another_tensorflow_is_the_machine_and_is_said():
    versions = pairs.MACHINE.versions | {"tensorflow": "2.16.1"}
    other = pairs.passport({}, pairs.changed(versions=versions))
    found = perfkit.compare(pairs.passport(), other)
    assert found.verdict == "no difference shown"
    assert "TensorFlow 2.21.0 on A, 2.16.1 on B" in found.because[0]
    assert "tensorflow" in [one.what for one in found.differences]
    # Another precision is another training and weights that one tells are not.
    one = pairs.passport()
    mixed = pairs.each(one.trainings, dtype="mixed_bfloat16")
    found = perfkit.compare(one, pairs.changed(one, trainings=mixed))
    assert all(work.speed is None for work in found.works)
    assert "No training was measured on both" in found.headline
    unknown = pairs.each(one.trainings, weights=None)
    found = perfkit.compare(one, pairs.changed(one, trainings=unknown))
    assert found.verdict == "no difference shown"


def test_two_findings_of_one_experiment_are_compared_by_variant():
    rates = {"naive": 1000.0, "prefetched": 1900.0}
    slow = {name: rate / 2 for name, rate in rates.items()}
    found = perfkit.compare(made.finding(rates, rounds=5), made.finding(slow, rounds=5))
    assert found.verdict == "slower"
    assert [work.name for work in found.works] == ["naive", "prefetched"]
    assert all(abs(work.speed.ratio - 0.5) < 0.03 for work in found.works)
    assert " an example; its time was not taken apart on both." in repr(found)
    assert " an example on A, " in found.because[0]
    assert "`perfkit passport`" in found.next[0]


@pytest.mark.parametrize(
    "fields", [{"experiment": "convolution"}, {"parameters": {"image_side": 512}}]
)
def test_findings_of_other_questions_are_not_the_same_job(fields):
    found = perfkit.compare(made.finding(), made.finding(**fields))
    assert found.verdict == "not the same job"
    assert found.works == ()


def test_two_machines_are_compared_microbenchmark_by_microbenchmark():
    fast = {n: (2 * rate, *rest) for n, (rate, *rest) in parts.RATES.items()}
    found = perfkit.compare(parts.finding(rounds=5), parts.finding(fast, rounds=5))
    assert [one.name for one in found.microbenchmarks] == list(parts.RATES)
    assert all(abs(one.speed.ratio - 2) < 0.1 for one in found.microbenchmarks)
    assert found.verdict == "not measured"
    assert f"of {len(fast)} parts B is faster in {len(fast)}" in found.headline


def test_two_diagnoses_of_one_training_are_compared():
    one = diagnosis()
    found = perfkit.compare(one, one)
    assert found.works[0].speed.ratio == 1
    assert found.verdict in ("no difference shown", "too noisy to say")
    names = ("median_s", "low", "high")
    step = {name: 3 * getattr(one.step, name) for name in names}
    slow = pairs.changed(one, step=pairs.changed(one.step, **step))
    assert perfkit.compare(one, slow).verdict == "slower"
    assert perfkit.compare(one, pairs.changed(one, training="another")).verdict == (
        "not the same job"
    )


@pytest.mark.parametrize(
    ("gpus", "facts", "device"),
    [
        ((), {}, ""),
        ((Gpu(name="T4"),), {}, "GPU:0"),
        ((Gpu(name="T4"),), {"pipeline": {"gpus": 0}}, "CPU:0"),
    ],
    ids=["no GPU", "a GPU", "a GPU that TensorFlow does not see"],
)
def test_a_diagnosis_computed_on_the_gpu_that_there_was(gpus, facts, device):
    found = diagnosis(machine=pairs.changed(gpus=gpus), facts=facts)
    (work,) = held(found).works.values()
    assert work.device == device


# Charts take their time: several attacks share a passport, each in its turn first.
_TOGETHER = 8


@pytest.mark.parametrize("start", range(0, len(ATTACKS), _TOGETHER))
def test_a_passport_full_of_attacks_does_no_harm(start):
    texts = [text[:200] for text in ATTACKS.values()]
    sound = passport.to_json(pairs.one_core()).encode()
    data = attacked(sound, *texts[start:], *texts[:start])
    odd = shown.machines_passport.parse(data, "x.json")
    show(perfkit.compare(odd, odd))
    show(perfkit.compare(pairs.passport(), odd))


@pytest.mark.parametrize("value", [5e-324, 1e29])
@pytest.mark.parametrize("where", ["seconds", "rate", "part", "sample"])
def test_numbers_that_no_machine_has_do_no_harm(where, value):
    odd, spread = pairs.one_core(), {"low": value, "high": value}
    steps = pairs.each(odd.trainings, seconds=value, **spread)
    benchmarks = pairs.each(odd.microbenchmarks, rate=value, **spread)
    parts = pairs.each(odd.trainings[0].parts, seconds=value, low=-value, high=value)
    fields = {
        "seconds": {"trainings": steps},
        "rate": {"microbenchmarks": benchmarks},
        "part": {"trainings": pairs.each(odd.trainings, parts=parts)},
        "sample": {"samples": dict.fromkeys(odd.samples, (value,) * pairs.SAMPLES)},
    }
    odd = pairs.changed(odd, **fields[where])
    show(perfkit.compare(pairs.passport(), odd))


def test_the_table_and_the_json_hold_the_same_numbers():
    found = perfkit.compare(pairs.passport(), pairs.one_core())
    table, told = found.table(), json.loads(found.to_json())
    assert told["headline"] == found.headline
    assert list(table.part[:3]) == ["all", "input", "dispatch"]
    first = table[(table.work == "wide dense") & (table.part == "compute")].iloc[0]
    (work,) = (one for one in told["works"] if one["name"] == "wide dense")
    (part,) = (one for one in work["changes"] if one["name"] == "compute")
    assert part["change"] == pytest.approx(first.change, rel=1e-4)


def test_the_recorded_machine_is_no_other_than_itself():
    one = perfkit.recorded()["epyc-2-cores"]
    found = perfkit.compare(one, one)
    assert found.verdict not in ("faster", "slower", "not the same job")
    show(found)
