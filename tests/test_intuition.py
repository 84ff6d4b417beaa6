"""Guesses against what was measured, with findings whose rates are known."""

import pytest

import perfkit
from perfkit import intuition
from perfkit.findings import store
from perfkit.measure.measurement import CONTROL
from perfkit.measure.statistics import Comparison
from tests.diagnosis.diagnosed import diagnosis
from tests.findings import parts
from tests.findings.made import failed, finding

RATES = {"naive": 1000.0, "parallel": 1300.0, "prefetched": 1900.0}


@pytest.fixture
def judged(tmp_path):
    """What comes of one finding with a guess."""

    def judge(found):
        store.save(found, tmp_path)
        (one,) = perfkit.guesses(tmp_path).all
        return one

    return judge


def test_a_ratio_holds_where_the_interval_of_the_fastest_has_it(judged):
    one = judged(finding(RATES, guess="about 1.9x"))
    assert one.held is True
    assert one.factor == pytest.approx(1, abs=0.05)
    assert one.measured.startswith("prefetched: 1.")


def test_a_ratio_that_was_too_high_says_by_what_factor(judged):
    one = judged(finding(RATES, guess="3.8x"))
    assert one.held is False
    assert one.factor == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    ("guess", "held"), [("prefetched", True), ("Parallel", False), ("naive", False)]
)
def test_a_name_holds_where_nothing_is_shown_to_be_faster(judged, guess, held):
    one = judged(finding(RATES, guess=guess))
    assert one.held is held
    assert one.factor is None


@pytest.mark.parametrize("guess", ["no idea", "42", "sideways"])
def test_what_is_neither_is_listed_and_not_judged(judged, guess):
    one = judged(finding(RATES, guess=guess))
    assert (one.guess, one.held) == (guess, None)
    assert "prefetched" in one.measured


def test_what_was_too_noisy_is_held_against_nobody(judged):
    alike = {"naive": 1000.0, "parallel": 1010.0}
    one = judged(finding(alike, rounds=1, guess="parallel"))
    assert one.held is None


def test_a_question_may_say_which_variant_a_ratio_is_about(judged):
    rates = {"batch 4": 1000.0, "batch 64": 3000.0, "batch 4,096": 2000.0}
    named = perfkit.experiment("batch-size").guessed
    assert named in rates
    found = finding(
        rates, against="batch 4", experiment="batch-size", parameters={}, guess="2x"
    )
    assert judged(found).held is True


def test_a_guess_about_a_machine_names_what_is_furthest_below_its_limit(judged):
    benchmarks = parts.RATES | {"convolution": (1e10, "FLOP", "TensorFlow", 5e11)}
    one = judged(parts.finding(benchmarks, guess="convolution"))
    assert one.held is True
    assert one.measured.startswith("convolution: at most 2")


def test_a_guess_about_a_training_means_its_best_change_and_no_ceiling(judged):
    one = judged(diagnosis(guess="2.5x"))
    assert one.question == "train.py:make_training"
    assert one.measured.startswith("parallel map: 2.5")
    assert one.held is True


def test_a_run_without_a_guess_and_a_file_that_is_none_are_left_out(tmp_path):
    store.save(finding(RATES), tmp_path)
    (tmp_path / "broken.json").write_text("{")
    found = perfkit.guesses(tmp_path)
    assert found.all == ()
    assert "No run here has a guess yet" in repr(found)


def test_nothing_that_was_timed_is_nothing_to_judge(judged):
    broken = failed("naive", "crashed", "It crashed.")
    one = judged(finding({}, rounds=0, extra=(broken,), guess="2x"))
    assert one.held is None


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
    return Comparison(
        variant="b",
        baseline="a",
        ratio=value,
        low=low,
        high=high,
        verdict=verdict,
        rounds=4,
    )


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
def test_a_guess_that_belongs_to_no_finding_is_kept_beside_them(
    guess, of, held, tmp_path
):
    store.save(finding(RATES, guess="prefetched"), tmp_path)
    intuition.keep("a question", guess, "b: 2.00\N{MULTIPLICATION SIGN}", of, tmp_path)
    first, kept = perfkit.guesses(tmp_path).all
    assert first.held is True
    assert (kept.question, kept.guess, kept.held) == ("a question", guess, held)
    assert (kept.factor is None) is (held is None and guess != "1x")
    assert len(perfkit.findings(tmp_path)) == 1


def test_no_guess_leaves_nothing(tmp_path):
    intuition.keep("a question", " \n", "much", folder=tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_lines_that_are_no_guesses_are_left_out(tmp_path):
    intuition.keep("a question", "2x", "much", folder=tmp_path)
    with (tmp_path / "guesses.jsonl").open("ab") as file:
        file.write(b'{"kind": "guess"}\nnot JSON\n\xff\n\n[[[[')
    assert len(perfkit.guesses(tmp_path).all) == 1
    assert "a question" in repr(perfkit.guesses(tmp_path))


def test_a_guess_that_cannot_be_kept_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="The guess could not be kept"):
        intuition.keep("a question", "2x", "much", folder=tmp_path / "file")
