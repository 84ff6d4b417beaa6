import pytest

from perfkit.findings import store
from perfkit.questions import gallery
from tests.charts.test_any_finding import check
from tests.findings.made import of_run
from tests.questions.cpu_or_gpu.test_question import PLACED
from tests.questions.crossings import CPU, GPU, ONE, SIZES, TWO, measured, steps

DAY = "2026-03-01T10:00:00+01:00"


def finding(run, **more):
    """A finding of a run whose ticks are known."""
    return of_run(run, experiment="cpu-or-gpu", recorded=DAY, **more)


def drawn(run, **more):
    return check(gallery.chart(finding(run, **more), "crossover"))


def test_the_curve_says_where_it_pays_and_on_which_machine_and_comes_first():
    run = measured(steps(ONE, TWO))
    assert next(iter(gallery.kinds(finding(run)))) == "crossover"
    figure = drawn(run)
    assert "what all cores gain over one core" in figure.alt
    assert "It pays from about width 10" in figure.alt
    assert "Over width of the network, batch 64" in figure.alt
    assert "2,048: 1.9" in figure.alt
    assert "512, batch 512: 1.9" in figure.alt
    assert "Intel Xeon Platinum 8481C" in figure.alt
    assert "2026-03-01" in figure.alt
    assert "Intel Xeon" in figure.svg


def test_a_recorded_gpu_is_drawn_from_its_file_alone(tmp_path):
    run = measured(steps(CPU, GPU, pair=("CPU", "GPU")))
    path = store.save(finding(run), tmp_path)
    figure = check(gallery.chart(store.load(path), "crossover"))
    assert "what the GPU gains over the CPU" in figure.alt


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (ONE, "It never pays within what was tried."),
        (tuple(part / 2 for part in ONE), "It pays at every width."),
    ],
)
def test_no_crossover_is_drawn_as_what_it_is(second, words):
    assert words in drawn(measured(steps(ONE, second))).alt


def test_both_dots_are_drawn():
    run = measured(PLACED, notes={"yours": {"flops": SIZES[1].cost.flops}})
    figure = drawn(run, parameters={"yours": "dense", "weights": 50_432})
    assert "128, dense: 1.2" in figure.alt
    assert "128, 50,432 weights: 1." in figure.alt


@pytest.mark.parametrize(
    ("parameters", "notes"),
    [
        ({"yours": ["x"], "weights": "y"}, {"yours": 7}),
        ({"yours": "dense", "weights": 10**30}, {"yours": {"flops": "many"}}),
        ({"yours": "dense", "weights": True}, {"yours": {"flops": -1}}),
        ({"weights": 3.5, "of another version": 1}, {"cores": []}),
    ],
)
def test_whatever_a_file_holds_it_is_a_picture(parameters, notes):
    run = measured(steps(ONE, TWO), notes=notes)
    assert "It pays from" in drawn(run, parameters=parameters).alt


@pytest.mark.parametrize(("sizes", "rounds"), [(SIZES[:1], 4), (SIZES, 1)])
def test_too_little_is_a_picture(sizes, rounds):
    drawn(measured(steps(ONE, TWO, sizes), rounds=rounds))
