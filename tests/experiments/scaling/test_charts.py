import re

import pytest

from perfkit import gallery
from perfkit.experiments.scaling.verdict import SHARED
from perfkit.experiments.scaling.work import LOGICAL
from perfkit.findings import store
from tests.charts.test_any_finding import check
from tests.experiments.scalings import measured, steps
from tests.findings.made import finding as made
from tests.findings.made import of_run


def finding(run, **more):
    """A finding of a run whose ticks are known."""
    return of_run(run, experiment="scaling", **more)


def test_it_comes_first_and_tells_rate_and_efficiency_of_every_number_of_devices():
    assert next(iter(gallery.kinds(finding(measured(steps()))))) == "scaling"
    assert "scaling" not in gallery.kinds(finding(measured(steps((1,)))))
    figure = check(gallery.chart(finding(measured(steps())), "scaling"))
    assert "what several GPUs bring" in figure.alt
    # 32 examples in 10 ms, and 128 in 14.5 ms.
    assert re.search(r"1 GPU: 3,[12]\d0 examples/s \(3,", figure.alt)
    assert re.search(r"4 GPUs: 8,[789]\d0 examples/s \(8,", figure.alt)
    assert "Efficiency of 4 GPUs: 69 % (" in figure.alt
    assert ">ideal<" in figure.svg
    assert ">69 %<" in figure.svg
    assert SHARED not in figure.alt


def test_logical_devices_are_drawn_with_what_they_cannot_show(tmp_path):
    path = store.save(finding(measured(steps(kind=LOGICAL))), tmp_path)
    figure = check(gallery.chart(store.load(path), "scaling"))
    assert SHARED in figure.alt
    assert "what more GPUs" in figure.svg


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("noise", [0.002, 0.9])
def test_however_noisy_it_is_a_picture(rounds, noise):
    run = measured(steps(), rounds=rounds, noise=noise)
    check(gallery.chart(finding(run), "scaling"))


def test_too_little_is_a_picture_that_says_so():
    for little in (made(experiment="scaling"), finding(measured(steps((1,))))):
        assert "Fewer than two" in check(gallery.chart(little, "scaling")).alt
