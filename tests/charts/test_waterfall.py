import pytest

from perfkit.questions.gallery import chart, kinds
from tests.charts.test_any_finding import check
from tests.training.diagnose.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain

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


@pytest.mark.parametrize(
    "found",
    [
        diagnosis(causes=(), together=None, ceiling=None),
        diagnosis(ceiling=gain(0.4, 0.5)),
        diagnosis(causes=tuple(cause("callback", f"{n}", 1e9) for n in range(60))),
        diagnosis(step=None),
    ],
)
def test_every_diagnosis_is_a_picture(found):
    check(chart(found, "waterfall"))
