import io
import itertools

import numpy as np
import pytest
from PIL import Image

from perfkit.experiments.shared import images


@pytest.fixture(scope="module")
def drawn():
    return [images.jpeg(seed, seed) for seed in range(8)]


def planes(jpeg):
    image = Image.open(io.BytesIO(jpeg)).convert("YCbCr")
    return np.moveaxis(np.asarray(image, float), -1, 0)


def steepness(plane):
    """The exponent with which the amplitude of a picture falls with frequency."""
    height, width = plane.shape
    window = np.hanning(height)[:, None] * np.hanning(width)
    amplitude = np.abs(np.fft.fft2((plane - plane.mean()) * window))
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    edges = np.geomspace(0.01, 0.4, 16)
    rings = list(itertools.pairwise(edges))
    means = [amplitude[(frequency >= a) & (frequency < b)].mean() for a, b in rings]
    middles = [np.sqrt(a * b) for a, b in rings]
    return np.polyfit(np.log(middles), np.log(means), 1)[0]


def test_their_size_on_disk_is_that_of_photographs(drawn):
    bits_per_pixel = np.mean([8 * len(jpeg) / (500 * 375) for jpeg in drawn])
    assert 3.5 < bits_per_pixel < 5.5


def test_their_amplitude_falls_about_as_one_over_the_frequency(drawn):
    slopes = [steepness(planes(jpeg)[0]) for jpeg in drawn]
    assert all(-1.6 < slope < -0.8 for slope in slopes)


def test_they_have_edges(drawn):
    # Steps between neighbours are far from Gaussian (kurtosis 3) where there are edges.
    for jpeg in drawn:
        steps = np.diff(planes(jpeg)[0], axis=1)
        assert (steps**4).mean() / (steps**2).mean() ** 2 > 6


def test_their_brightness_varies_more_than_their_colours(drawn):
    for jpeg in drawn:
        bright, blue, red = (plane.std() for plane in planes(jpeg))
        assert bright > 2 * max(blue, red)
        assert min(blue, red) > 3


def test_they_differ_in_how_much_detail_they_have(drawn):
    sizes = [len(jpeg) for jpeg in drawn]
    assert max(sizes) > 1.2 * min(sizes)


def test_the_same_seed_draws_the_same_picture():
    assert images.jpeg(3, 1) == images.jpeg(3, 1)
    assert images.jpeg(3, 1) != images.jpeg(4, 1)


def test_the_class_can_be_told_by_the_tint():
    first, second = (planes(images.jpeg(5, label)) for label in (0, 5))
    assert abs(first[1].mean() - second[1].mean()) > 10
