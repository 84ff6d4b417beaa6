import re

import pytest

from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import Part
from perfkit.findings.report import in_text
from perfkit.gallery import chart, kinds
from tests.charts.test_any_finding import ATTACK, check
from tests.diagnosis.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain

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


@pytest.mark.parametrize(
    "found",
    [
        diagnosis(causes=()),
        diagnosis(causes=(), together=None, ceiling=None, split={}),
        diagnosis(ceiling=gain(0.4, 0.5)),
        diagnosis(causes=tuple(cause("callback", f"{n}", 1e9) for n in range(60))),
        diagnosis(training=ATTACK, causes=(cause(ATTACK, ATTACK, 2.0),)),
        diagnosis(step=None),
        diagnosis(split={ATTACK: Part(seconds=1.0, grade="inferred", how=ATTACK)}),
        diagnosis(split={"unexplained": Part(seconds=-0.01, grade="inferred")}),
    ],
)
def test_every_diagnosis_is_a_picture(found):
    for kind in ("waterfall", "split", "anatomy"):
        assert "alert(1)<" not in check(chart(found, kind)).svg
    for kind in kinds(found):
        check(chart(found, kind))


def test_no_claim_is_said_to_be_none():
    picture = chart(diagnosis(causes=(), together=None))
    assert "no change is claimed" in picture.svg


def test_what_was_not_measured_has_no_waterfall():
    assert "waterfall" not in kinds(diagnosis(step=None))
    said = chart(diagnosis(step=None), "waterfall").alt
    assert "could not be measured" in said


def test_the_parts_of_a_step_are_drawn_with_what_is_unexplained_last():
    parts = {
        "unexplained": Part(seconds=0.010, grade="inferred"),
        "input": Part(seconds=0.022, grade="measured here"),
    }
    said = chart(diagnosis(split=parts), "split").alt
    assert "input 22 ms, 69 %, measured here; unexplained 10 ms, 31 %" in said


def test_the_plan_of_its_pipeline_is_drawn():
    stage = {"name": "map", "share": 0.9, "ns_per_element": 2e6, "parallelism": 2}
    found = diagnosis(anatomy={"stages": [stage, {"name": 3}, 7], "limits": "map"})
    assert "map, 90 %, 2 at a time" in check(chart(found, "anatomy")).alt
    assert "anatomy" in kinds(found)
    said = in_text(found.report, whole=True)
    (row,) = (line for line in said.splitlines() if line.startswith("map "))
    limits = ["90 %", "2 ms", "2", "read from TensorFlow; it limits"]
    assert re.split(r"  +", row)[1:] == limits


def test_a_diagnosis_has_the_charts_of_its_trials_too():
    assert list(kinds(diagnosis()))[:2] == ["waterfall", "split"]
    assert {"rates", "ratios", "timeline"} <= set(kinds(diagnosis((LOGGER,))))


def test_a_kind_that_there_is_not_is_refused():
    with pytest.raises(BadParameterError, match="is no chart"):
        chart(diagnosis(), "pie")
