import pytest

from perfkit.findings.profile import Profile, ProfiledStep
from perfkit.questions.gallery import chart, kinds
from tests.charts.test_any_finding import check
from tests.training.diagnose.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain
from tests.training.profile.profiled import profile

XLA = cause("xla", "XLA", 1.4, "opportunity")


def test_every_change_is_drawn_from_the_step_as_given():
    said = check(chart(diagnosis(causes=(SLOW_MAP, XLA)))).alt
    # 32 ms / 2.5 and 32 ms / 1.4.
    assert "; parallel map: 12.8 ms, 2.50× (2.38 to 2.62), a defect" in said
    assert "; XLA: 22.9 ms, 1.40× (1.33 to 1.47), an opportunity" in said
    assert said.index("as given: 32 ms") < said.index("parallel map")
    assert said.index("the best together") < said.index("without input")
    # It has the charts of its trials too.
    found = diagnosis((LOGGER,))
    assert {"waterfall", "rates", "ratios", "timeline"} <= set(kinds(found))
    for kind in kinds(found):
        check(chart(found, kind))


def step(seconds, name="a", **parts):
    return ProfiledStep(name=name, seconds=seconds, parts=parts)


@pytest.mark.parametrize(
    "found",
    [
        diagnosis(causes=(), together=None, ceiling=None),
        diagnosis(ceiling=gain(0.4, 0.5)),
        diagnosis(causes=tuple(cause("callback", f"{n}", 1e9) for n in range(60))),
        diagnosis(step=None),
        profile(steps=(), table=()),
        profile(steps=(step(0.0),)),
        profile(steps=(step(5e-324, input=1e30),)),
        profile(steps=(step(1.0, "", input=5.0),) * 60),
    ],
)
def test_every_diagnosis_and_every_profile_is_a_picture(found):
    check(chart(found, "steps" if isinstance(found, Profile) else "waterfall"))
