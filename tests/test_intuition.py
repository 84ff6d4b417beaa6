"""Guesses against what was measured, with findings whose rates are known."""

import re
from dataclasses import replace

import pytest

import perfkit
from perfkit import intuition, units
from perfkit.experiments.replay import BROUGHT
from perfkit.findings import store
from perfkit.measure.measurement import CONTROL
from perfkit.measure.statistics import Comparison
from tests.diagnosis.diagnosed import diagnosis
from tests.findings import parts
from tests.findings.made import failed, finding

RATES = {"naive": 1000.0, "parallel": 1300.0, "prefetched": 1900.0}
SIZES = {"batch 4": 1000.0, "batch 64": 3000.0, "batch 4,096": 2000.0}
BENCHMARKS = parts.RATES | {"convolution": (1e10, "FLOP", "TensorFlow", 5e11)}
BROKEN = failed("naive", "crashed", "It crashed.")


@pytest.mark.parametrize(
    ("made", "held", "factor", "measured"),
    [
        # A ratio holds where the interval of the fastest has it.
        (finding(RATES, guess="about 1.9x"), True, 1, "prefetched: 1."),
        # One that was too high says by what factor.
        (finding(RATES, guess="3.8x"), False, 2, ""),
        # What takes longer is no speed-up, and words may stand before a ratio.
        (finding({"naive": 1000.0, "parallel": 500.0}, guess="2x slower"), True, 1, ""),
        (finding(RATES, guess="prefetched, 1.9x"), True, 1, ""),
        (finding(RATES, guess="1,900x"), False, 1000, ""),
        # A name holds where nothing is shown to be faster.
        (finding(RATES, guess="prefetched"), True, None, ""),
        (finding(RATES, guess="naive"), False, None, ""),
        # What is neither is listed and not judged.
        (finding(RATES, guess="no idea"), None, None, ".*prefetched"),
        (finding(RATES, guess="42"), None, None, ".*prefetched"),
        # What was too noisy is held against nobody, nor is what was not timed.
        (finding({"naive": 1000.0, "parallel": 1010.0}, rounds=1, guess="parallel"),
         None, None, ""),
        (finding({}, rounds=0, extra=(BROKEN,), guess="2x"), None, None, ""),
        # A question may say which variant a ratio is about.
        (finding(SIZES, against="batch 4", experiment="batch-size", parameters={},
         guess="2x"), True, 1, ""),
        # A guess about a machine names what is furthest below its limit.
        (parts.finding(BENCHMARKS, guess="convolution"), True, None,
         "convolution: at most 2"),
        # One about a training means its best change and no ceiling.
        (diagnosis(guess="2.5x"), True, 1, "parallel map: 2.5"),
    ],
    ids=lambda made: getattr(made, "guess", None),
)  # fmt: skip
def test_a_guess_is_judged(tmp_path, made, held, factor, measured):
    store.save(made, tmp_path)
    (one,) = perfkit.guesses(tmp_path).all
    assert (one.guess, one.held) == (made.guess, held)
    assert one.factor == (factor and pytest.approx(factor, rel=0.05))
    assert re.match(measured, one.measured)


def test_a_guess_that_is_no_ratio_and_no_name_is_not_called_noise(tmp_path):
    store.save(finding(RATES, guess="about twice"), tmp_path)
    intuition.keep("two machines", "twice", "half as fast", folder=tmp_path)
    report = perfkit.guesses(tmp_path).report
    assert report.verdict.headline.startswith("No guess could be read")
    said = {row[-1] for row in report.table.rows}
    assert said == {"not read: write 2x, or a name"}


def test_a_guess_is_listed_by_its_question(tmp_path):
    assert perfkit.experiment("batch-size").guessed in SIZES
    store.save(diagnosis(guess="2.5x"), tmp_path)
    (one,) = perfkit.guesses(tmp_path).all
    assert one.question == "train.py:make_training"


def test_a_guess_is_held_against_the_number_of_the_report(tmp_path):
    found = perfkit.load(BROUGHT / "diagnosis-make-training.json")
    best = found.causes[0].speedup
    said = units.ratio_between(best.estimate, best.low, best.high)
    store.save(replace(found, guess="3x"), tmp_path)
    (one,) = perfkit.guesses(tmp_path).all
    assert one.measured.endswith(f": {said}")


def test_a_recording_is_marked_counts_once_and_stands_where_it_was_shown(tmp_path):
    store.save(finding(RATES, guess="1.9x"), tmp_path)
    old = "2020-01-01T00:00:00+00:00"
    for _ in range(2):
        shown = finding(RATES, guess="1.9x", recorded=old, replayed=True)
        store.save(shown, tmp_path)
    found = perfkit.guesses(tmp_path)
    assert [one.replayed for one in found.all] == [False, True]
    assert found.report.verdict.headline == "2 of 2 guesses held."
    assert [row[0] for row in found.report.table.rows] == [
        "data-pipeline",
        "data-pipeline (recorded)",
    ]


def test_a_guess_counts_once_with_its_last_run_and_again_for_another_question(tmp_path):
    days = [f"2025-03-{day}T09:26:53+01:00" for day in (15, 14, 13)]
    for day in days[:2]:
        store.save(finding(RATES, guess="1.9x", recorded=day), tmp_path)
    other = {"image_side": 64}
    store.save(
        finding(RATES, guess="1.9x", recorded=days[2], parameters=other), tmp_path
    )
    recorded = [one.recorded for one in perfkit.guesses(tmp_path).all]
    assert recorded == [days[2], days[0]]
    intuition.keep("two machines", "2x", "A", folder=tmp_path)
    intuition.keep("two machines", "2x", "A", folder=tmp_path)
    intuition.keep("two machines", "2x", "B", folder=tmp_path)
    assert len(perfkit.guesses(tmp_path).all) == 4


def test_a_run_without_a_guess_and_a_file_that_is_none_are_left_out(tmp_path):
    store.save(finding(RATES), tmp_path)
    (tmp_path / "broken.json").write_text("{")
    found = perfkit.guesses(tmp_path)
    assert found.all == ()
    assert "No run here has a guess yet" in repr(found)


def test_the_sentence_says_how_many_held_and_where_the_others_missed(tmp_path):
    for guess in ("1.9x", "prefetched", "3.8x", "7.6x", "0.95x"):
        store.save(finding(RATES, guess=guess), tmp_path)
    found = perfkit.guesses(tmp_path)
    assert found.report.verdict.headline == "2 of 5 guesses held."
    assert "2 of 3 were too high" in found.report.verdict.much
    assert "factor of 2." in found.report.verdict.much
    assert list(found.table()["held"]).count(True) == 2
    assert CONTROL not in repr(found)


def ratio(low, value, high, verdict="faster"):
    names = {"variant": "b", "baseline": "a", "verdict": verdict, "rounds": 4}
    return Comparison(ratio=value, low=low, high=high, **names)


@pytest.mark.parametrize(
    ("guess", "of", "held"),
    [
        ("2x", ratio(1.8, 2.0, 2.2), True),
        ("3x", ratio(1.8, 2.0, 2.2), False),
        ("b", ratio(1.8, 2.0, 2.2), None),
        ("1x", ratio(0.9, 1.2, 1.6, "too noisy to say"), None),
        ("2x", ratio(0.5, 2.0, 9.0), None),
        ("2x", None, None),
    ],
)
def test_a_guess_of_no_finding_is_kept_beside_them(guess, of, held, tmp_path):
    store.save(finding(RATES, guess="prefetched"), tmp_path)
    intuition.keep("a question", guess, "b: 2.00\N{MULTIPLICATION SIGN}", of, tmp_path)
    first, kept = perfkit.guesses(tmp_path).all
    assert first.held is True
    assert (kept.question, kept.guess, kept.held) == ("a question", guess, held)
    assert (kept.factor is None) is (held is None and guess != "1x")
    assert len(perfkit.findings(tmp_path)) == 1


def test_no_guess_leaves_nothing_and_lines_that_are_none_are_left_out(tmp_path):
    intuition.keep("a question", " \n", "much", folder=tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    intuition.keep("a question", "2x", "much", folder=tmp_path)
    with (tmp_path / "guesses.jsonl").open("ab") as file:
        file.write(b'{"kind": "guess"}\nnot JSON\n\xff\n\n[[[[')
    assert len(perfkit.guesses(tmp_path).all) == 1
    assert "a question" in repr(perfkit.guesses(tmp_path))


def test_a_guess_that_cannot_be_kept_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="The guess could not be kept"):
        intuition.keep("a question", "2x", "much", folder=tmp_path / "file")
