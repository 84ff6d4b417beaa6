import keras
import numpy as np
import tensorflow as tf

from perfkit.experiments.data_pipeline.variants import VARIANTS
from perfkit.experiments.shared import decoding


def test_a_step_learns():
    keras.utils.set_random_seed(0)
    step = decoding.step_of(decoding.small_cnn(32, 2))
    labels = np.array([0, 1] * 8)
    images = np.random.default_rng(0).random((16, 32, 32, 3), "float32") * 0.1
    images[labels == 1] += 0.9
    losses = [step(images, labels) for _ in range(300)]
    assert losses[-1] < 0.5 * losses[0]


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


def test_every_way_has_a_step_that_takes_its_batches(task):
    for name in ("naive map", "uint8", "augment in model", "python generator"):
        method = VARIANTS[name]
        images, labels = next(iter(method.build(task)))
        assert np.isfinite(method.step(task)(images, labels))
