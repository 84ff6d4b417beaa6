import pytest

from perfkit import gallery
from tests.charts.test_any_finding import check
from tests.charts.test_kinds import texts
from tests.experiments.disturbed import ALL, found, run


def test_a_run_beside_loads_is_shown_by_its_signs_first():
    assert next(iter(gallery.kinds(found(run())))) == "signs"


def test_the_numbers_of_every_variant_are_in_the_picture_and_in_its_words():
    figure = check(gallery.chart(found(run(noise=0.0)), "signs"))
    written = [text for text, *_ in texts(figure)]
    assert {"0.60 cores", "0.95 cores", "1.20 cores"} <= set(written)
    assert {"500 MB/s", "40 ms", "20 ms", "48 %"} <= set(written)
    assert all(written.count(name) >= 2 for name in ALL)
    assert "sleeping pipeline: a step 40 ms, waiting for input 48 %" in figure.alt


@pytest.mark.parametrize(
    "made",
    [
        found(run(("quiet",), rounds=1)),
        found(run(("quiet", "mystery"), rounds=1), mystery=3),
        found(run(shows={name: {"disk_read": 0.0} for name in ALL})),
    ],
)
def test_every_chart_of_signs_is_a_picture(made):
    assert len(check(gallery.chart(made, "signs")).svg) < 70_000


def test_a_gpu_that_was_slowed_shows_under_the_steps():
    made = run(("quiet", "gpu product"))
    mask = tuple(0x40 if n % 2 else 0 for n in range(len(made.samples["t"])))
    slowed = found(made)
    slowed.samples["gpu0_throttle"] = mask
    assert "GPU 0 was slowed: too hot" in gallery.chart(slowed, "timeline").alt
