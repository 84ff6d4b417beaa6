import itertools
from dataclasses import replace

from perfkit.findings.record import Verdict
from perfkit.questions import gallery
from perfkit.questions.execution_mode import charts as own_charts
from tests.charts.test_any_finding import check
from tests.charts.test_kinds import marks, texts, words
from tests.findings.made import finding, of_run
from tests.questions import races

STEPS = {"eager loop": 3200.0, "tf.function": 16_000.0, "fit eagerly": 1600.0}
FIRSTS = {"eager loop": 0.11, "tf.function": 0.902, "fit eagerly": 0.3}


def modes(**more):
    """Steps of 10, 2 and 20 ms, after first calls that cost what is written above."""
    run = races.measured(STEPS, firsts=FIRSTS, first=32, noise=0.0)
    known = {"verdict": Verdict(headline="x", winner="tf.function")}
    known |= {"experiment": "execution-mode", "parameters": {"batch": 32}}
    return of_run(run, **known | more)


def test_the_crossing_is_marked_where_the_steps_add_up_to_it_and_none_without():
    assert "break even" in gallery.kinds(modes())
    assert "break even" not in gallery.kinds(modes(baseline="fit unwatched"))
    figure = check(gallery.chart(modes(), "break even"))
    slow = itertools.accumulate([0.11, *[0.010] * 500])
    fast = itertools.accumulate([0.902, *[0.002] * 500])
    steps = next(n for n, (s, f) in enumerate(zip(slow, fast, strict=True), 1) if f < s)
    assert steps in (100, 101)
    assert "tf.function after 100 steps (100 to 100)" in " ".join(words(figure))
    at = {text: x for text, x, _ in texts(figure)}
    assert any(abs(x - at["100"]) < 0.5 for x, _ in marks(figure, "fill:#"))
    # What never pays back is said and not marked.
    assert "fit eagerly: first call 280 ms, then 20 ms a step, never pays" in figure.alt
    assert "fit eagerly after" not in " ".join(words(figure))


def test_without_a_winner_none_is_green_and_without_trials_there_is_no_line():
    made, undecided = modes(), Verdict(headline="Not known yet.")
    gone = replace(made.timings[0], variant="gone")
    odd = replace(made, timings=(*made.timings, gone), verdict=undecided)
    said = " ".join(words(check(own_charts.break_even(odd))))
    assert "green: the fastest" not in said
    assert "gone" not in said


def test_without_a_batch_an_example_is_a_step_and_one_variant_crosses_nothing():
    figure = gallery.chart(modes(parameters={"batch": "many"}), "break even")
    assert "then 62.5 µs a step" in figure.alt
    for made in (finding({}, rounds=0), finding({"naive": 1000.0})):
        assert "No two variants were timed." in check(own_charts.break_even(made)).alt
