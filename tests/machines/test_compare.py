import json
import math

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.reading import parse
from perfkit.findings.report import in_text
from perfkit.machines.compare import Row, add_speed, compare
from perfkit.machines.record import BETWEEN_RUNS, HALF, Passport, Value, side_of
from tests.findings import made
from tests.findings.page.pages import problems
from tests.hostile import shown
from tests.hostile.texts import ATTACKS, attacked
from tests.machines import pairs
from tests.machines.pairs import changed, each


def show(two):
    """Look at two machines in every way they can be shown."""
    texts = [in_text(two.report, in_full=True), two.chart.alt]
    shown.check(texts, [two._repr_html_(), two.chart.svg], [two.page()])
    assert len(two.table()) == len(two.rows)


def row(two, training, part):
    return next(r for r in two.rows if (r.training, r.part) == (training, part))


def with_trainings(passport, trainings):
    return changed(passport, trainings=tuple(trainings))


@pytest.fixture
def files(here):
    # A guess is kept there.
    paths = here / "a.json", here / "b.json"
    store.save(pairs.passport(), path=paths[0])
    store.save(pairs.one_core(), path=paths[1])
    return paths


def test_the_largest_difference_is_told_with_the_part_that_holds_most_of_it():
    a, b = pairs.passport(), pairs.one_core()
    two = compare(a, b)
    assert two.verdict == "slower"
    assert (two.main.training, two.largest.part) == ("small CNN from JPEG", "input")
    verdict = two.report.verdict
    assert verdict.headline == (
        "Small CNN from JPEG takes 1.9 times as long on B as on A."
    )
    assert "Most of the difference is input: " in verdict.much
    assert (verdict.sure, verdict.next[:27]) == ("sure", "`perfkit run data-pipeline`")
    # The other way round it is the same part.
    turned = compare(b, a)
    assert (turned.verdict, turned.largest.part) == ("faster", "input")
    assert "runs 1.9 times as fast on B" in turned.report.verdict.headline
    assert compare(a, pairs.onednn_off()).largest.part == "compute"
    # Shares are plain arithmetic and add up to the difference.
    parts = [r for r in two.rows if r.training == two.main.training][1:]
    assert sum(part.share for part in parts) == pytest.approx(1)
    seconds = [one.trainings[2].parts[0].seconds for one in (a, b)]
    share = (seconds[1] - seconds[0]) / (two.main.b - two.main.a)
    assert row(two, two.main.training, "input").share == pytest.approx(share)
    # Where no difference of a step is shown, no part has a share.
    assert all(part.share is None for part in compare(a, a).rows)
    table = two.table()
    assert list(table.part[:3]) == ["step", "input", "dispatch"]
    first = table[(table.training == "wide dense") & (table.part == "compute")].iloc[0]
    assert first.change == row(two, "wide dense", "compute").change


def test_a_part_whose_change_the_intervals_leave_open_holds_nothing():
    a, slow = pairs.passport(), pairs.onednn_off()
    vague = [
        changed(t, parts=each(t.parts, low=-1.0, high=1.0)) for t in slow.trainings
    ]
    two = compare(a, with_trainings(slow, vague))
    assert two.verdict == "slower"
    assert two.largest is None
    assert "no single part is shown" in two.report.verdict.much
    # Nor does a step that was not taken apart.
    bare = compare(a, with_trainings(slow, each(vague, parts=())))
    assert bare.largest is None
    show(bare)


def test_what_is_left_open_or_was_tried_once_claims_nothing():
    wide = pairs.passport(width=0.3)
    two = compare(wide, wide)
    assert two.verdict == "too noisy to say"
    assert two.report.verdict.sure == "not known yet"
    assert "A difference above 10 % is still possible in: tiny dense" in repr(two)
    slow = pairs.onednn_off()
    two = compare(
        pairs.passport(), with_trainings(slow, each(slow.trainings, trials=1))
    )
    assert two.verdict == "too noisy to say"


def value(ratio, half, trials=3):
    ends = {"low": ratio * math.exp(-half), "high": ratio * math.exp(half)}
    return Value(value=ratio, unit="B", trials=trials, **ends)


def test_a_claim_needs_a_ratio_beyond_its_interval_and_the_noise_floors():
    empty = Row(training="", part="a", unit="B")
    a, b = value(1.0, 0.01), value(0.86, 0.01)
    slower = add_speed(empty, a, b)
    half = math.hypot(0.01, 0.01, HALF * BETWEEN_RUNS, HALF * BETWEEN_RUNS)
    assert slower.verdict == "slower"
    assert slower.low == pytest.approx(0.86 * math.exp(-half), rel=1e-4)
    assert slower.high == pytest.approx(0.86 * math.exp(half), rel=1e-4)
    assert add_speed(empty, a, b, floor=0.2).verdict == "too noisy to say"
    assert add_speed(empty, a, value(0.99, 0.01)).verdict == "no difference shown"
    assert add_speed(empty, value(1.0, 0.2), b).verdict == "too noisy to say"
    assert add_speed(empty, a, value(0.5, 0.01, trials=1)).verdict == "too noisy to say"
    # More looks widen every interval; the normal distribution's 0.975 and 0.995.
    five = add_speed(empty, a, b, looks=5)
    ratio = math.log(five.high / five.low) / math.log(slower.high / slower.low)
    assert ratio == pytest.approx(2.57583 / 1.95996, rel=1e-3)
    assert add_speed(empty, a, Value(unit="B")) == empty


def test_trainings_that_differ_both_ways_depend_on_the_training():
    rates = {"JPEG decode": 0.3, "TensorFlow product, float32": 2.0}
    two = compare(pairs.passport(), pairs.passport(rates))
    assert two.verdict == "depends on the training"
    assert "Wide dense runs 1.8 times as fast on B as on A." in repr(two)


def test_a_machine_that_others_kept_busy_is_named_and_nothing_else_is_claimed():
    slow = pairs.busy()
    for name, both in (
        ("B", (pairs.passport(), slow)),
        ("A", (slow, pairs.passport())),
    ):
        two = compare(*both)
        assert two.verdict == "busy"
        verdict = two.report.verdict
        assert verdict.headline == (
            f"{name} was busy during its recording: other programs kept 1 of its 2 "
            "cores busy (renderer)."
        )
        assert verdict.sure == "not known yet"
        assert verdict.next == f"End them, record {name} again, and compare again."
        show(two)
    # Two that were as busy are compared.
    assert compare(slow, slow).verdict != "busy"


def test_a_load_takes_nothing_while_cores_stand_idle_or_are_free():
    def sampled(passport, **columns):
        every = {name: (load,) * pairs.SAMPLES for name, load in columns.items()}
        return changed(passport, samples=passport.samples | every)

    idle = sampled(pairs.passport(), cpu_trial=0.3, cpu_other=0.5)
    assert side_of(idle).share_of_others == 0
    beside = pairs.passport({}, changed(cores=32))
    assert side_of(sampled(beside, cpu_trial=1.9, cpu_other=4.0)).share_of_others == 0
    # A machine that is faster although others kept it busy is faster.
    fast = pairs.passport(dict.fromkeys(pairs.RATES, 4.0), others=1.0)
    assert compare(pairs.passport(), fast).verdict == "faster"
    # What nobody watched is no load of nothing.
    unwatched = changed(pairs.busy(), samples={})
    assert side_of(unwatched).share_of_others is None
    assert compare(pairs.passport(), unwatched).verdict == "slower"


@pytest.mark.parametrize("word", ["recipe", "seed", "data", "model"])
def test_another_job_gets_no_word_on_speed(word):
    trainings = [changed(t, job=t.job | {word: 7}) for t in pairs.one_core().trainings]
    two = compare(pairs.passport(), with_trainings(pairs.one_core(), trainings))
    assert two.verdict == "not the same job"
    assert f"{word}: " in two.report.verdict.headline
    assert all(row.speed is row.change is None for row in two.rows if row.training)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"batch": 64}, "Not the same job: batch: 32 on A, 64 on B."),
        ({"weights": 999}, "Not the same job: weights: 1,032 on A, 999 on B."),
        (
            {"seconds": None, "parts": (), "missing": "It crashed."},
            "Not measured on B. It crashed.",
        ),
    ],
    ids=["batch", "weights", "crash"],
)
def test_one_training_that_is_not_compared_says_why_and_leaves_the_others(fields, why):
    slow = pairs.onednn_off()
    first, *rest = slow.trainings
    two = compare(
        pairs.passport(), with_trainings(slow, (changed(first, **fields), *rest))
    )
    assert two.verdict == "slower"
    assert row(two, "tiny dense", "step").missing == why
    assert "tiny dense, step" in in_text(two.report, in_full=True)


def test_what_belongs_to_the_machine_is_a_fact_and_another_precision_no_comparison():
    a = pairs.passport()
    versions = pairs.MACHINE.versions | {"tensorflow": "2.16.1"}
    two = compare(a, pairs.passport({}, changed(versions=versions)))
    assert two.verdict == "no difference shown"
    assert "tensorflow 2.21.0 on A, 2.16.1 on B" in repr(two)
    # Weights that only one of them tells are no other job.
    unknown = with_trainings(a, each(a.trainings, weights=None))
    assert compare(a, unknown).verdict == "no difference shown"
    mixed = with_trainings(a, each(a.trainings, dtype="mixed_bfloat16"))
    assert compare(a, mixed).verdict == "not measured"


NOTHING = {"trainings": (), "microbenchmarks": (), "samples": {}, "label": ""}


@pytest.mark.parametrize(
    "fields",
    [
        {"trainings": ()},
        {"microbenchmarks": ()},
        {"samples": {}},
        {"noise_floors": {}},
        NOTHING | {"recorded": ""},
    ],
    ids=lambda fields: " ".join(fields),
)
def test_an_incomplete_passport_is_compared_as_far_as_it_goes(fields):
    odd = changed(pairs.one_core(), **fields)
    for both in ((pairs.passport(), odd), (odd, pairs.passport()), (odd, odd)):
        show(compare(*both))


def test_the_command_writes_the_page_and_a_guess_stands_everywhere(files, capsys):
    two = perfkit.compare(*files, guess="B, 2x, input")
    assert "Your guess: B, 2x, input" in repr(two)
    assert "your guess: B, 2x, input" in two.chart.svg
    assert "Your guess: B, 2x, input" in two.page()
    show(perfkit.compare(*files, guess=ATTACKS["script"]))
    out = files[0].with_name("two.html")
    assert cli.main(["compare", *map(str, files), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Small CNN from JPEG takes 1.9 times as long on B as on A.")
    assert "They differ in: cores granted 2 on A, 1 on B" in text
    assert "Written: " in text
    written = out.read_text(encoding="utf-8")
    assert problems(written) == []
    assert "<svg" in written
    assert "<script" not in written


def test_what_cannot_be_compared_is_one_sentence(files, capsys):
    odd = files[0].with_name("odd.json")
    odd.write_bytes(b'{"kind": "recipe", "schema": 1}')
    with pytest.raises(BadFileError, match="not a passport but a recipe"):
        perfkit.compare(files[0], odd)
    assert cli.main(["compare", str(files[0]), str(odd)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    for nothing in (7, made.finding()):
        with pytest.raises(BadParameterError, match="cannot be compared"):
            perfkit.compare(files[0], nothing)
    # Two passports that share nothing are no success.
    empty = files[0].with_name("empty.json")
    store.save(pairs.passport(trainings=(), microbenchmarks=()), path=empty)
    assert cli.main(["compare", str(files[0]), str(empty)]) == 1
    assert "No training was measured on both" in capsys.readouterr().out


def test_a_passport_full_of_attacks_does_no_harm():
    texts = [text[:200] for text in ATTACKS.values()]
    data = attacked(store.to_json(pairs.one_core()).encode(), *texts)
    odd = parse(data, "x.json", Passport)
    show(compare(odd, odd))
    show(compare(pairs.passport(), odd))


@pytest.mark.parametrize("value", [5e-324, 1e29])
@pytest.mark.parametrize("where", ["seconds", "rate", "part", "sample"])
def test_numbers_that_no_machine_has_do_no_harm(where, value):
    odd, spread = pairs.one_core(), {"low": value, "high": value}
    steps = each(odd.trainings, seconds=value, **spread)
    benchmarks = each(odd.microbenchmarks, rate=value, **spread)
    parts = each(odd.trainings[0].parts, seconds=value, low=-value, high=value)
    fields = {
        "seconds": {"trainings": steps},
        "rate": {"microbenchmarks": benchmarks},
        "part": {"trainings": each(odd.trainings, parts=parts)},
        "sample": {"samples": dict.fromkeys(odd.samples, (value,) * pairs.SAMPLES)},
    }
    show(compare(pairs.passport(), changed(odd, **fields[where])))


def test_a_recorded_machine_is_no_other_than_itself_and_one_core_is_slower():
    whole, one_core = perfkit.recorded().values()
    assert compare(whole, whole).verdict in ("no difference shown", "too noisy to say")
    two = compare(whole, one_core)
    assert two.verdict == "slower"
    assert two.largest.part == "input"
    show(two)
    json.loads(two.table().to_json())
