import numpy as np
import pytest

from perfkit.experiments.shared import decoding

SHAPES = [(64, 64, 3), (65, 64, 3), (375, 500, 3), (500, 375, 3)]


def image(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, "uint8")


@pytest.mark.parametrize("shape", SHAPES)
def test_tensorflow_and_numpy_augment_alike(shape):
    pixels = image(shape)
    for drawn in decoding.draws(20):
        with_numpy = decoding.with_numpy(pixels, drawn, 64)
        with_tensorflow = decoding.augment(pixels, drawn, 64).numpy()
        assert with_numpy.dtype == with_tensorflow.dtype == np.float32
        np.testing.assert_allclose(with_tensorflow, with_numpy, atol=1e-6)


def test_one_number_after_another_gives_the_same():
    pixels = image((70, 80, 3))
    for drawn in decoding.draws(5):
        np.testing.assert_allclose(
            decoding.by_element(pixels, drawn, 64),
            decoding.with_numpy(pixels, drawn, 64),
            atol=1e-6,
        )


@pytest.mark.parametrize(("share", "corner"), [(0.0, 0), (0.5, 2), (0.9999999, 4)])
def test_the_square_reaches_every_edge_and_no_further(share, corner):
    pixels = np.zeros((68, 68, 3), "uint8")
    pixels[corner, corner] = 255
    # Half and more is not mirrored; a brightness of one half changes nothing.
    drawn = np.array([share, share, 0.9, 0.5], "float32")
    square = decoding.with_numpy(pixels, drawn, 64)
    assert square.shape == (64, 64, 3)
    assert square[0, 0].tolist() == [1, 1, 1]


def test_half_of_the_images_are_mirrored():
    pixels = np.zeros((64, 64, 3), "uint8")
    pixels[:, :32] = 255
    mirrored = [
        decoding.with_numpy(pixels, drawn, 64)[0, 0, 0] < 0.5
        for drawn in decoding.draws(400)
    ]
    assert 0.4 < np.mean(mirrored) < 0.6


def test_brightness_moves_both_ways_and_not_too_far():
    pixels = np.full((64, 64, 3), 51, "uint8")
    values = np.array(
        [decoding.with_numpy(pixels, drawn, 64).mean() for drawn in decoding.draws(400)]
    )
    assert 0.1 <= values.min() < 0.12
    assert 0.28 < values.max() <= 0.3


def test_the_same_seed_draws_the_same_numbers():
    np.testing.assert_array_equal(decoding.draws(9, 4), decoding.draws(9, 4))
    assert (decoding.draws(9, 4) != decoding.draws(9, 5)).any()
