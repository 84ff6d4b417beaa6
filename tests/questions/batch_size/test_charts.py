from dataclasses import replace

import pytest

from perfkit.charts.canvas import GREEN
from perfkit.questions import gallery
from perfkit.questions.batch_size import charts as own_charts
from tests.charts.test_any_finding import ATTACK, check
from tests.charts.test_kinds import marks, texts, words
from tests.findings.made import finding, trial
from tests.questions.batches import FORECAST, learnt, tried

KINDS = ("batches", "steps", "memory", "learning")
RATES = {"batch 4": 1000.0, "batch 16": 3000.0, "batch 64": 6000.0, "batch 256": 6010.0}
HELD = {"batch 4": 15_000_000, "batch 256": 40_000_000}
TRIED = (
    tried("fits 512?", batch=512, memory={"resident": 60_000_000}),
    tried("fits 544?", "out-of-memory", "ran out of memory", batch=544),
    tried("the usual loop", told=[[4, 100.0], [16, 2000.0], [256, 9000.0]]),
    learnt(4, [2.3, 1.0, 0.4]),
    learnt(256, [2.3, 2.2, 2.0, 1.9]),
)
TOLD = tuple(
    trial(name, 10.0, 9, notes={"memory": {"resident": held}})
    for name, held in HELD.items()
)


def sized(**more):
    """A finding over batch sizes whose rates are known."""
    defaults = {"experiment": "batch-size", "parameters": {"memory": 256}}
    defaults |= {"notes": {"forecast": FORECAST, "gpus": 0}, "extra": (*TOLD, *TRIED)}
    return finding(RATES, against="batch 4", **(defaults | more))


def spoiled(note):
    """A finding whose notes may be anything."""
    notes = dict.fromkeys(("told", "losses", "memory", "batch"), note)
    names = ("the usual loop", "learning by 4", "fits 4?", "batch 4", ATTACK)
    trials = (trial(name, 10.0, 0, notes=notes) for name in names)
    return sized(extra=(*TRIED, *trials), notes={"forecast": note, "gpus": note})


NOTES = (ATTACK, -1, 10**29, [[10**29, 1e29]], {"resident": 10**29, "weights": -5})


@pytest.mark.parametrize(
    "made",
    [
        sized(),
        sized(extra=()),
        sized(extra=TRIED[:1], notes={}),
        finding({"batch 4": 1000.0}, against="batch 4"),
        finding({"batch 4": 1e-3, "batch 4,096": 1e9}, against="batch 4"),
        *map(spoiled, (*NOTES, [1e29])),
    ],
)
def test_every_chart_of_every_finding_is_a_picture(made):
    kinds = list(gallery.kinds(sized()))
    assert kinds[0] == "batches"
    assert set(KINDS) <= set(kinds)
    for kind in KINDS:
        figure = check(gallery.chart(replace(made, experiment="batch-size"), kind))
        assert len(figure.svg) < 40_000
        assert "<script" not in figure.svg


def test_rates_stand_where_the_axes_say_and_the_knee_is_named_or_still_rising():
    figure = own_charts.batch_sizes(sized())
    assert "examples per second (logarithmic)" in words(figure)
    at = {text: (x, y) for text, x, y in texts(figure)}
    # Equal ratios are equal distances.
    assert at["16"][0] - at["4"][0] == pytest.approx(at["64"][0] - at["16"][0], abs=0.5)
    (knee,) = {x for x, _ in marks(figure, GREEN)}
    assert knee == pytest.approx(at["64"][0], abs=0.5)
    assert {"enough: 64", "the usual loop"} <= set(words(figure))
    assert "4: 100. 16: 2,000. 256, the usual loop: 9,000." in figure.alt
    rates = {"batch 4": 100.0, "batch 64": 900.0}
    rising = finding(rates, against="batch 4", experiment="batch-size")
    assert "still rising: 64" in words(own_charts.batch_sizes(rising))


def test_the_line_is_drawn_with_both_numbers():
    rates = {f"batch {n}": n / (0.002 + 1e-4 * n) for n in (4, 16, 64, 256)}
    made = finding(rates, against="batch 4", experiment="batch-size")
    figure = own_charts.step_costs(made)
    said = words(figure)
    assert any(text.startswith("overhead ") for text in said)
    assert any(text.startswith("+ ") and text.endswith(" each") for text in said)
    assert "line: an overhead of" in figure.alt


def test_memory_shows_forecast_limit_what_does_not_fit_and_what_it_asked_for():
    figure = own_charts.memory(sized())
    said = " ".join(words(figure))
    assert {"forecast from shapes", "perfkit's limit 256 MB"} <= set(words(figure))
    assert "256: 40 MB" in figure.alt
    assert "from shapes, at most 3.78 MB" in figure.alt
    assert "512 fit into the 256 MB that perfkit allows. ✕ 544 do not" in figure.alt
    assert "it had asked for" not in said
    held = {"resident": 60_000_000, "data": 190_000_000}
    extra = (*TOLD, tried("fits 512?", batch=512, memory=held), TRIED[1])
    figure = own_charts.memory(sized(extra=extra))
    assert "that perfkit allows, it had asked for 190 MB" in figure.alt
    gpu = sized(extra=extra, notes={"forecast": FORECAST, "gpus": 1})
    assert "limit" not in " ".join(words(own_charts.memory(gpu)))


def test_learning_is_drawn_by_examples_and_by_seconds():
    figure = own_charts.learning(sized())
    said = words(figure)
    assert {"examples learnt from (logarithmic)", "seconds of training"} <= set(said)
    assert "With 4 examples a batch the loss fell from 2.3 to 0.4" in figure.alt
    assert "one training at each batch size" in " ".join(said)
