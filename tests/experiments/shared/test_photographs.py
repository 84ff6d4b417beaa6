import io
import itertools
from unittest.mock import Mock

import keras
import numpy as np
import pytest
from PIL import Image

from perfkit.errors import MissingPartError
from perfkit.experiments.shared import images


def planes(jpeg):
    image = Image.open(io.BytesIO(jpeg)).convert("YCbCr")
    return np.moveaxis(np.asarray(image, float), -1, 0)


def steepness(plane):
    """The exponent with which the amplitude of a picture falls with frequency."""
    height, width = plane.shape
    window = np.hanning(height)[:, None] * np.hanning(width)
    amplitude = np.abs(np.fft.fft2((plane - plane.mean()) * window))
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    rings = list(itertools.pairwise(np.geomspace(0.01, 0.4, 16)))
    means = [amplitude[(frequency >= a) & (frequency < b)].mean() for a, b in rings]
    middles = [np.sqrt(a * b) for a, b in rings]
    return np.polyfit(np.log(middles), np.log(means), 1)[0]


def test_they_are_as_large_and_as_steep_and_have_edges_like_photographs():
    drawn = [images.jpeg(seed, seed) for seed in range(8)]
    assert 3.5 < np.mean([8 * len(jpeg) / (500 * 375) for jpeg in drawn]) < 5.5
    sizes = [len(jpeg) for jpeg in drawn]
    assert max(sizes) > 1.2 * min(sizes)
    slopes = [steepness(planes(jpeg)[0]) for jpeg in drawn]
    assert all(-1.6 < slope < -0.8 for slope in slopes)
    # Steps between neighbours are far from Gaussian (kurtosis 3) where there are edges.
    for jpeg in drawn:
        steps = np.diff(planes(jpeg)[0], axis=1)
        assert (steps**4).mean() / (steps**2).mean() ** 2 > 6
        bright, blue, red = (plane.std() for plane in planes(jpeg))
        assert bright > 2 * max(blue, red)
        assert min(blue, red) > 3


def test_a_seed_draws_the_same_picture_and_the_class_can_be_told_by_the_tint():
    assert images.jpeg(3, 1) == images.jpeg(3, 1)
    assert images.jpeg(3, 1) != images.jpeg(4, 1)
    first, second = (planes(images.jpeg(5, label)) for label in (0, 5))
    assert abs(first[1].mean() - second[1].mean()) > 10


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))


def test_photographs_are_drawn_into_a_folder_for_each_class(run):
    told, folder = run(images.image_folder("photographs", 16))
    files = sorted(folder.rglob("*.jpg"))
    assert len(files) == 16
    assert len({path.parent for path in files}) == 10
    assert Image.open(files[0]).size == (500, 375)
    assert told[-1].value == "Drawing photographs, once (1.84 MB): 16 of 16"
    assert run(images.image_folder("photographs", 16))[0] == []


def test_all_of_cifar10_comes_from_keras_without_loss(run, monkeypatch):
    every = np.random.default_rng(0).integers(0, 255, (10, 32, 32, 3), "uint8")
    train = every, np.arange(10, dtype="uint8")[:, None] % 3
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", lambda: (train, None))
    _, folder = run(images.image_folder("cifar10", 1000))
    assert len(list(folder.rglob("*.png"))) == len(every)
    for index, pixels in enumerate(every):
        path = folder / f"class-{index % 3}" / f"{index:05d}.png"
        np.testing.assert_array_equal(np.asarray(Image.open(path)), pixels)


def test_no_network_is_said_in_a_sentence(run, monkeypatch, tmp_path):
    failed = Exception("URL fetch failure on https://somewhere: None -- [Errno -2]")
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", Mock(side_effect=failed))
    why = r"\(URL fetch failure\); it needs the net"
    with pytest.raises(MissingPartError, match=why):
        run(images.image_folder("cifar10", 10))
    assert not list(tmp_path.iterdir())
