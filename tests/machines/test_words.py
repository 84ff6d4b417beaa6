import re
from dataclasses import replace

from perfkit.findings.report import in_text
from perfkit.machine.record import Busy, Load
from perfkit.passports import words as passport_words
from perfkit.passports.passport import ENDED, Training
from tests.findings.made import MACHINE
from tests.machines.passports import passport, training

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def test_the_preview_says_what_is_in_the_file_and_what_is_not():
    load = Load(top=(Busy(program="firefox", cores=0.4),))
    made = passport(machine=replace(MACHINE, load=load))
    said = passport_words.preview(made, 31_400)
    assert said.splitlines()[0] == "In this file (31.4 KB):"
    assert "1 check with" in said
    assert "the rates of 4 parts" in said
    assert "1 reference training," in said
    assert "60 samples" in said
    assert "firefox" in said
    assert "OMP_NUM_THREADS" in said
    held, _, left_out = said.partition("Not in it:")
    assert "name" in left_out
    assert "host" not in held


def test_names_that_were_asked_for_are_shown_as_part_of_it():
    said = passport_words.preview(passport(host="dgx-3", user="ada"), 1000)
    held, _, left_out = said.partition("Not in it:")
    assert "the host's name, dgx-3 and the user's name, ada" in held
    assert "--with-names" not in left_out


def test_the_text_has_every_training_with_its_split():
    lines = in_text(passport().report, whole=True).splitlines()
    said = [" ".join(line.split()) for line in lines]
    assert any(one.startswith("tiny dense 2 ms (1.8 ms to 2.2 ms) ?") for one in said)
    product = "NumPy product, float32 200 GFLOP/s (194 to 206), 40 % of its limit"
    assert product in said
    assert "warn: This laptop runs on its battery" in said


def test_no_part_reaches_more_than_all_of_its_limit():
    made = passport()
    benchmarks = tuple(
        replace(r, limit=r.limit and r.rate / 1.32) for r in made.microbenchmarks
    )
    said = in_text(replace(made, microbenchmarks=benchmarks).report, whole=True)
    assert "200 GFLOP/s (194 to 206), beyond its limit" in said
    assert "132 %" not in said


def test_what_is_missing_says_why():
    broken = Training(name="wide dense", batch=32, missing="No room.")
    made = passport(trainings=(broken,), without=("memory copy",), stopped=True)
    said = " ".join(in_text(made.report, whole=True).split())
    assert "wide dense not measured. No room." in said
    assert "memory copy not measured. Its library is missing." in said
    assert "stopped before it was whole" in said


def test_a_mixed_precision_is_in_the_name():
    assert (
        passport_words.title(training("a", 1.0, dtype="mixed_bfloat16"))
        == "a, bfloat16"
    )


def test_the_card_has_a_column_for_every_part():
    heads = re.findall(r'<th scope="col">(\w+)', passport()._repr_html_())
    assert heads[:7] == [
        *("training", "a", "input", "dispatch", "transfer", "compute", "unexplained")
    ]


def test_a_budget_too_small_for_any_training_is_said_with_one_that_is_not():
    none = tuple(Training(name=n, batch=32, missing=ENDED) for n in ("a", "b"))
    refused = Training(name="c", batch=32, missing="Not tried here: it has no GPU.")
    for budget, enough in ((60.0, 180), (180.0, 360)):
        made = passport(trainings=(*none, refused), budget_s=budget)
        assert made.report.verdict.much == (
            f"No reference training was measured in {budget:.0f} s: make it again "
            f"with `budget={enough}`."
        )
    assert "no reference training\n" in passport_words.preview(made, 1000)
    some = (*none, training("d", 0.002))
    for trainings in (some, (refused,), ()):
        assert passport(trainings=trainings).report.verdict.much == ""
    # Who pressed Stop knows why.
    assert passport(trainings=none, stopped=True).report.verdict.much == ""
