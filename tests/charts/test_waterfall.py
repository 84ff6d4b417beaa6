import re
from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import Part
from perfkit.findings.profile import Profile, ProfiledStep
from perfkit.findings.report import in_text
from perfkit.questions.gallery import chart, kinds
from tests.charts.test_any_finding import check
from tests.training.diagnose.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain
from tests.training.profile.profiled import profile

XLA = cause("xla", "XLA", 1.4, "opportunity")


def test_every_change_is_drawn_from_the_step_as_given():
    others = cause("contention", "", 1.2)
    said = check(chart(diagnosis(causes=(SLOW_MAP, XLA, others)))).alt
    # 32 ms / 2.5 and 32 ms / 1.4.
    assert "; parallel map 12.8 ms, 2.50× (2.38 to 2.62), a defect" in said
    assert "; XLA 22.9 ms, 1.40× (1.33 to 1.47), an opportunity" in said
    assert "; contention 26.7 ms, 1.20× (1.14 to 1.26), a defect" in said
    assert said.index("as given 32 ms") < said.index("parallel map")
    assert said.index("the best together") < said.index("without input")
    # It has the charts of its trials too.
    assert list(kinds(diagnosis()))[:2] == ["waterfall", "split"]
    found = diagnosis((LOGGER,))
    assert {"rates", "ratios", "timeline"} <= set(kinds(found))
    for kind in kinds(found):
        check(chart(found, kind))


@pytest.mark.parametrize(
    ("guess", "said"), [("0.4x", "dotted line: your guess"), ("0.1x", "guess: 0.1x")]
)
def test_a_step_that_was_guessed_to_be_longer_is_drawn_where_it_is_near(guess, said):
    found = diagnosis(guess=guess)
    shown = check(chart(found, "waterfall")).svg
    assert said in shown
    # 32 ms / 0.4 is on the axis then.
    assert (">80 ms<" in shown) == (guess == "0.4x")


def step(seconds, name="a", **parts):
    return ProfiledStep(name=name, seconds=seconds, parts=parts)


@pytest.mark.parametrize(
    "found",
    [
        diagnosis(causes=()),
        diagnosis(causes=(), together=None, ceiling=None, split={}),
        diagnosis(ceiling=gain(0.4, 0.5)),
        diagnosis(causes=tuple(cause("callback", f"{n}", 1e9) for n in range(60))),
        diagnosis(step=None),
        profile(steps=(), table=()),
        profile(steps=(step(0.0),)),
        profile(steps=(step(5e-324, input=1e30),)),
        profile(steps=(step(1e30, input=1e-9),)),
        profile(steps=(step(1.0, "", input=5.0),) * 60),
    ],
)
def test_every_diagnosis_and_every_profile_is_a_picture(found):
    is_profile = isinstance(found, Profile)
    for kind in ("steps",) if is_profile else ("waterfall", "split", "anatomy"):
        check(chart(found, kind))


def test_no_claim_is_said_to_be_none_and_what_is_unexplained_comes_last():
    assert "no change is shown" in chart(diagnosis(causes=(), together=None)).svg
    assert "waterfall" not in kinds(diagnosis(step=None))
    assert "could not be measured" in chart(diagnosis(step=None), "waterfall").alt
    # The parts of a step are drawn with what is unexplained last.
    known = {
        "unexplained": Part(seconds=0.010, grade="inferred"),
        "input": Part(seconds=0.022, grade="measured here"),
    }
    said = chart(diagnosis(split=known), "split").alt
    assert "input 22 ms, 69 %, measured here; unexplained 10 ms, 31 %" in said


def test_the_plan_of_its_pipeline_is_drawn():
    stage = {"name": "map", "share": 0.9, "ns_per_element": 2e6, "parallelism": 2}
    found = diagnosis(anatomy={"stages": [stage, {"name": 3}, 7], "limits": "map"})
    assert "map, 90 %, 2 at a time" in check(chart(found, "anatomy")).alt
    assert "anatomy" in kinds(found)
    said = in_text(found.report, in_full=True)
    (row,) = (line for line in said.splitlines() if line.startswith("map "))
    limits = ["90 %", "2 ms", "2", "most work, by TensorFlow's own clock"]
    assert re.split(r"  +", row)[1:] == limits
    assert "without the shuffle" not in said
    driven = replace(found, anatomy=found.anatomy | {"without": "shuffle"})
    assert "without the shuffle" in in_text(driven.report, in_full=True)
    # What is under way for the next ones would count as work for these few.
    early = diagnosis(anatomy={"stages": [stage | {"elements": 3}]})
    assert "map, 90 %, 2 at a time" in chart(early, "anatomy").alt
    (row,) = (
        line
        for line in in_text(early.report, in_full=True).splitlines()
        if line.startswith("map ")
    )
    assert re.split(r"  +", row)[1:] == ["90 %", "?", "2"]


def test_each_step_is_drawn_with_its_parts():
    said = check(chart(profile())).alt
    assert said.count("train 1 10 ms: waiting for input 6 ms, host compute 3 ms") == 8
    assert "tracing makes a step 1.18× as long" in said
    cheap = profile(traced_s=(0.0099,), untraced_s=(0.0098, 0.01))
    assert "the tracer's own cost does not show" in chart(cheap).alt
    assert list(kinds(profile())) == ["steps"]
    assert kinds(profile(steps=(), table=())) == {}
