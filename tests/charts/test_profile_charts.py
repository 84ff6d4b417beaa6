import pytest

from perfkit.errors import BadParameterError
from perfkit.findings.profile import ProfiledStep
from perfkit.gallery import chart, kinds
from tests.charts.test_any_finding import ATTACK, check
from tests.profiling.profiled import DENSE, MAP, profile


def op(**changes):
    return DENSE.__class__(**(vars(DENSE) | changes))


def test_each_step_is_drawn_with_its_parts():
    said = check(chart(profile())).alt
    assert said.count("train 1 10 ms: waiting for input 6 ms, host compute 3 ms") == 8
    assert "tracing makes a step 1.18× as long" in said


def test_each_operation_has_its_share():
    said = check(chart(profile(), "ops")).alt
    assert "model/dense/MatMul 30 ms, 75 % of the host's, MatMul, 10 times" in said
    assert said.index("dense") < said.index("Iterator")


def test_a_profile_has_both_charts_where_it_has_what_they_show():
    assert list(kinds(profile())) == ["steps", "ops"]
    assert kinds(profile(steps=(), table=())) == {}


def test_there_is_no_other_chart_of_a_profile():
    with pytest.raises(BadParameterError, match="'rates' is no chart of this"):
        chart(profile(), "rates")


@pytest.mark.parametrize(
    "made",
    [
        profile(steps=(), table=()),
        profile(training=ATTACK, table=(op(name=ATTACK, type=ATTACK),)),
        profile(table=(MAP, op(self_s=1e9, device="device"))),
        profile(table=tuple(op(name=f"{n}" * 90, self_s=n) for n in range(40))),
        profile(steps=(ProfiledStep(name=ATTACK, seconds=1e-9, parts={ATTACK: 9.0}),)),
        profile(steps=(ProfiledStep(name="a", seconds=0.0, parts={}),)),
        profile(
            steps=(ProfiledStep(name="a", seconds=5e-324, parts={"input": 1e30}),),
            table=(op(self_s=5e-324),),
        ),
        profile(
            steps=(ProfiledStep(name="a", seconds=1e30, parts={"input": 1e-9}),),
            table=(op(self_s=1e30),),
        ),
        profile(steps=(ProfiledStep(name="", seconds=1.0, parts={"input": 5.0}),) * 60),
    ],
)
def test_every_profile_is_a_picture(made):
    for kind in ("steps", "ops"):
        assert "alert(1)<" not in check(chart(made, kind)).svg
