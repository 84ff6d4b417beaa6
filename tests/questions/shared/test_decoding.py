import itertools
import sys
from types import SimpleNamespace

import keras
import numpy as np
import psutil
import pytest
import tensorflow as tf

import perfkit
from perfkit.engine.tick import READY
from perfkit.errors import RunError
from perfkit.questions.data_pipeline.variants import VARIANTS
from perfkit.questions.shared import benchmark, decoding


def decoded(path, decoder):
    """Decode in a process of its own; how many did, what they did, who is left."""
    path.write_bytes(b"12345")

    def look(_):
        limit = decoding.limit(SimpleNamespace(paths=(path,) * 3), decoder)
        ready, at_work = next(limit), psutil.Process().children()
        ticks = list(itertools.islice(limit, 3))
        limit.close()
        assert ready == READY
        done = min(tick.examples for tick in ticks)
        return len(at_work), done, len(psutil.Process().children())

    return perfkit.fresh(look)


@pytest.mark.skipif(sys.platform != "linux", reason="threads elsewhere")
def test_every_core_decodes_and_no_process_is_left(tmp_path):
    image = tmp_path / "image"
    at_work, done, left = decoded(image, lambda: lambda file: bytes(reversed(file)))
    assert (at_work, left) == (benchmark.granted(), 0)
    assert done > 0


@pytest.mark.parametrize("decoder", [lambda: lambda file: 1 / 0, lambda: 1 / 0])
def test_a_process_that_ends_early_is_said(tmp_path, decoder):
    with pytest.raises(RunError, match="that decode ended before its time"):
        decoded(tmp_path / "image", decoder)


def test_threads_do_the_same_where_there_is_no_fork(images, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    limit = decoding.limit(images)
    taken = list(itertools.islice(limit, 4))
    limit.close()
    assert taken[0] is READY
    assert all(tick.examples > 0 for tick in taken[1:])


SHAPES = [(64, 64, 3), (65, 64, 3), (375, 500, 3), (500, 375, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_tensorflow_and_numpy_augment_alike_one_number_after_another_too(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    for number, drawn in enumerate(decoding.draws(20)):
        with_numpy = decoding.with_numpy(pixels, drawn, 64)
        ways = [decoding.augment(pixels, drawn, 64).numpy()]
        ways += [decoding.by_element(pixels, drawn, 64)] if number < 3 else []
        for way in ways:
            assert with_numpy.dtype == way.dtype == np.float32
            np.testing.assert_allclose(way, with_numpy, atol=1e-6)


@pytest.mark.parametrize(("share", "corner"), [(0.0, 0), (0.5, 2), (0.9999999, 4)])
def test_the_square_reaches_every_edge_and_no_further(share, corner):
    pixels = np.zeros((68, 68, 3), "uint8")
    pixels[corner, corner] = 255
    # Half and more is not mirrored; a brightness of one half changes nothing.
    drawn = np.array([share, share, 0.9, 0.5], "float32")
    square = decoding.with_numpy(pixels, drawn, 64)
    assert square.shape == (64, 64, 3)
    assert square[0, 0].tolist() == [1, 1, 1]


def test_half_of_the_images_are_mirrored_and_brightness_moves_both_ways():
    pixels = np.full((64, 64, 3), 51, "uint8")
    pixels[:, :32] = 0
    draws = decoding.draws(400, 4)
    np.testing.assert_array_equal(draws, decoding.draws(400, 4))
    squares = np.stack([decoding.with_numpy(pixels, drawn, 64) for drawn in draws])
    left, right = squares[:, 0, 0, 0], squares[:, 0, -1, 0]
    assert 0.4 < np.mean(left > right) < 0.6
    brightest = np.maximum(left, right)
    assert 0.1 <= brightest.min() < 0.12
    assert 0.28 < brightest.max() <= 0.3


def test_a_step_learns_and_every_way_has_one_that_takes_its_batches(task):
    keras.utils.set_random_seed(0)
    step = decoding.step_of(decoding.small_cnn(32, 2))
    labels = np.array([0, 1] * 8)
    images = np.random.default_rng(0).random((16, 32, 32, 3), "float32") * 0.1
    images[labels == 1] += 0.9
    losses = [step(images, labels) for _ in range(300)]
    assert losses[-1] < 0.5 * losses[0]
    for name in ("naive map", "uint8", "augment in model", "python generator"):
        method = VARIANTS[name]
        images, labels = next(iter(method.build(task)))
        assert np.isfinite(method.step(task)(images, labels))


def test_bytes_become_what_the_pipeline_would_have_made_of_them(task):
    squares, brighter = next(iter(VARIANTS["uint8"].build(task)))[0]
    assert squares.dtype == tf.uint8
    given = decoding.from_bytes((squares, brighter)).numpy()
    wanted = next(iter(VARIANTS["naive map"].build(task)))[0].numpy()
    np.testing.assert_allclose(given, wanted, atol=1e-6)


def test_augmentation_as_layers_mirrors_and_brightens_each_image_for_itself():
    inner = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Identity()])
    images = np.zeros((64, 32, 32, 3), "float32")
    images[:, :, :16] = 0.5
    seen = np.asarray(decoding.augmenting(inner)(images, training=True))
    left, right = seen[:, 0, 0, 0], seen[:, 0, -1, 0]
    assert 0.2 < np.mean(left < right) < 0.8
    brightest = np.maximum(left, right) - 0.5
    assert np.abs(brightest).max() <= decoding.BRIGHTNESS + 1e-6
    assert len(np.unique(brightest.round(4))) > 30
