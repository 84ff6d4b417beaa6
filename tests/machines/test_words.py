import re
from dataclasses import replace

from perfkit.findings.report import in_text
from perfkit.machine.record import Busy, Load
from perfkit.passports import words as passport_words
from perfkit.passports.passport import ENDED, Training
from tests.findings.made import MACHINE
from tests.machines.passports import passport, training


def previewed(size=1000, **fields):
    """What is said to be in the file, and what not."""
    held, _, out = passport_words.preview(passport(**fields), size).partition("Not in")
    return held, out


def test_the_preview_says_what_is_in_the_file_and_what_is_not():
    load = Load(top=(Busy(program="firefox", cores=0.4),))
    held, left_out = previewed(31_400, machine=replace(MACHINE, load=load))
    assert held.splitlines()[0] == "In this file (31.4 KB):"
    for part in (
        *("1 check with", "the rates of 4 parts", "1 reference training,"),
        *("60 samples", "firefox", "OMP_NUM_THREADS"),
    ):
        assert part in held
    assert "name" in left_out
    assert "host" not in held
    # Names that were asked for are shown as part of it.
    held, left_out = previewed(host="dgx-3", user="ada")
    assert "the host's name, dgx-3 and the user's name, ada" in held
    assert "--with-names" not in left_out


def test_the_text_has_every_training_with_its_split():
    lines = in_text(passport().report, whole=True).splitlines()
    said = [" ".join(line.split()) for line in lines]
    assert any(one.startswith("tiny dense 2 ms (1.8 ms to 2.2 ms) ?") for one in said)
    product = "NumPy product, float32 200 GFLOP/s (194 to 206), 40 % of its limit"
    assert product in said
    assert "warn: This laptop runs on its battery" in said
    # No part reaches more than all of its limit.
    rates = passport().microbenchmarks
    rates = tuple(replace(r, limit=r.limit and r.rate / 1.32) for r in rates)
    said = in_text(passport(microbenchmarks=rates).report, whole=True)
    assert "200 GFLOP/s (194 to 206), beyond its limit" in said
    assert "132 %" not in said
    assert "below 0" not in said
    # Parts that were measured one by one may come to more than the step.
    (one,) = passport().trainings
    parts = tuple(replace(p, low=-2e-4, seconds=-1e-4, high=-1e-5) for p in one.parts)
    said = in_text(passport(trainings=(replace(one, parts=parts),)).report)
    assert "unexplained is below 0 where parts that were measured one by one" in said
    # What is missing says why.
    broken = Training(name="wide dense", batch=32, missing="No room.")
    made = passport(trainings=(broken,), without=("memory copy",), stopped=True)
    said = " ".join(in_text(made.report, whole=True).split())
    assert "wide dense not measured. No room." in said
    assert "memory copy not measured. Its library is missing." in said
    assert "stopped before it was whole" in said


def test_the_card_has_a_column_for_every_part():
    heads = re.findall(r'<th scope="col">(\w+)', passport()._repr_html_())
    parts = ["input", "dispatch", "transfer", "compute", "unexplained"]
    assert heads[:7] == ["training", "a", *parts]
    # A mixed precision is in the name.
    mixed = training("a", 1.0, dtype="mixed_bfloat16")
    assert passport_words.title(mixed) == "a, bfloat16"


def test_a_budget_too_small_for_any_training_is_said_with_one_that_is_not():
    none = tuple(Training(name=n, batch=32, missing=ENDED) for n in ("a", "b"))
    refused = Training(name="c", batch=32, missing="Not tried here: it has no GPU.")
    for budget, enough in ((60.0, 180), (180.0, 360)):
        made = passport(trainings=(*none, refused), budget_s=budget)
        assert made.report.verdict.much == (
            f"No reference training was measured in {budget:.0f} s: make it again "
            f"with a budget of {enough} s."
        )
    assert "no reference training\n" in passport_words.preview(made, 1000)
    some = (*none, training("d", 0.002))
    for trainings in (some, (refused,), ()):
        assert passport(trainings=trainings).report.verdict.much == ""
    # Who pressed Stop knows why.
    assert passport(trainings=none, stopped=True).report.verdict.much == ""
