import pytest

from perfkit import gallery
from perfkit.findings import store
from tests.charts.test_any_finding import check
from tests.experiments.cpu_or_gpu.test_question import PLACED
from tests.experiments.crossings import CPU, GPU, ONE, SIZES, TWO, measured, steps
from tests.findings.made import of_run

DAY = "2026-03-01T10:00:00+01:00"


def finding(run, **more):
    """A finding of a run whose ticks are known."""
    return of_run(run, experiment="cpu-or-gpu", recorded=DAY, **more)


def test_the_curve_says_where_it_pays_and_on_which_machine_and_comes_first():
    kinds = gallery.kinds(finding(measured(steps(ONE, TWO))))
    assert next(iter(kinds)) == "crossover"
    assert "plane" in kinds
    figure = check(gallery.chart(finding(measured(steps(ONE, TWO))), "crossover"))
    assert "what all cores gain over one core" in figure.alt
    assert "It pays from about width 10" in figure.alt
    assert "width 2,048, batch 64: 1.9" in figure.alt
    assert "width 512, batch 512: 1.9" in figure.alt
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
    figure = check(gallery.chart(finding(measured(steps(ONE, second))), "crossover"))
    assert words in figure.alt


def test_the_plane_says_where_it_pays_at_other_batches():
    figure = check(gallery.chart(finding(measured(steps(ONE, TWO))), "plane"))
    assert "By the fit it pays from width" in figure.alt
    assert "width 32, batch 64: 0.9" in figure.alt
    never = check(gallery.chart(finding(measured(steps(ONE, ONE))), "plane"))
    assert "do not say for sure" in never.alt


def test_both_dots_are_drawn():
    run = measured(PLACED, notes={"yours": {"flops": SIZES[1].cost.flops}})
    found = finding(run, parameters={"yours": "dense", "weights": 50_432})
    figure = check(gallery.chart(found, "crossover"))
    assert "dense, like width 128" in figure.alt
    assert "50,432 weights, like width 128" in figure.alt


@pytest.mark.parametrize("kind", ["crossover", "plane"])
@pytest.mark.parametrize(
    ("parameters", "notes"),
    [
        ({"yours": ["x"], "weights": "y"}, {"yours": 7}),
        ({"yours": "dense", "weights": 10**30}, {"yours": {"flops": "many"}}),
        ({"yours": "dense", "weights": True}, {"yours": {"flops": -1}}),
        ({"weights": 3.5}, {"cores": []}),
    ],
)
def test_whatever_a_file_holds_it_is_a_picture(kind, parameters, notes):
    run = measured(steps(ONE, TWO), notes=notes)
    check(gallery.chart(finding(run, parameters=parameters), kind))


@pytest.mark.parametrize("kind", ["crossover", "plane"])
def test_too_little_is_a_picture(kind):
    check(gallery.chart(finding(measured(steps(ONE, TWO, SIZES[:1]))), kind))
    check(gallery.chart(finding(measured(steps(ONE, TWO), rounds=1)), kind))
