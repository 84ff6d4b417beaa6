import pytest

from perfkit.questions import gallery
from perfkit.questions.mixed_precision import charts as own_charts
from tests.charts.test_any_finding import ATTACK, check
from tests.charts.test_kinds import marks, texts, words
from tests.findings.made import finding
from tests.questions.batches import tried
from tests.questions.mixed_precision.test_question import learnt, scaled

KINDS = ("losses", "loss scale")
NOTES = ("curve", "loss scale", "memory")
RATES = {"float32": 1000.0, "mixed_bfloat16": 2000.0}
TRIED = (
    learnt("float32", [2.0, 1.5, 1.0], 1),
    learnt("mixed_bfloat16", [2.0, 1.6, 1.2], 1),
    learnt("float32", [2.2, 1.7, 1.4], 2),
    learnt("mixed_bfloat16", [2.2, 1.7, 1.2], 2),
    scaled([1024.0, 1024.0, 2048.0, 1024.0, 1024.0]),
)


def precise(**more):
    """A finding over precisions whose losses are known."""
    defaults = {"experiment": "mixed-precision", "notes": {}, "extra": TRIED}
    return finding(RATES, against="float32", **(defaults | more))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "made",
    [
        precise(),
        precise(extra=()),
        precise(extra=TRIED[:2]),
        precise(extra=(learnt("float32", [1.0, 1.0]), learnt("x", [1.0, 1.0]))),
        precise(extra=(learnt("float32", [1e300, 1.0]), learnt("x", [1.0, 1e300]))),
        precise(extra=(*TRIED[:1], learnt(ATTACK, [2.0, 1.0]))),
        precise(extra=(scaled([1e-30, 1e30]),)),
        *(
            precise(extra=(*TRIED, tried(ATTACK, **dict.fromkeys(NOTES, note))))
            for note in (ATTACK, -1, 10**29, [[1e29]], {"losses": [None]})
        ),
    ],
)
def test_every_chart_of_every_finding_is_a_picture(kind, made):
    figure = check(gallery.chart(made, kind))
    assert len(figure.svg) < 40_000
    assert "<script" not in figure.svg


def test_losses_of_float32_stand_beside_those_of_each_precision():
    assert set(KINDS) <= set(gallery.kinds(precise()))
    figure = own_charts.losses(precise())
    for name in ("float32", "mixed_bfloat16"):
        assert f"{name}: 1.2 after 18 steps" in figure.alt
        assert name in words(figure)
    assert "mixed_bfloat16: too noisy to say" in figure.alt


def test_skipped_steps_stand_at_their_step_and_scale():
    figure = own_charts.loss_scale(precise())
    steps = "In 4 steps it began at 1,024, reached 2,048 and ended at 1,024; "
    assert figure.alt.endswith(f"{steps}1 step skipped.")
    at = {text: (x, y) for text, x, y in texts(figure)}
    ((x, _),) = (mark for mark in marks(figure, "stroke:#d55e00") if mark)
    assert x == pytest.approx(at["3"][0], abs=1)
