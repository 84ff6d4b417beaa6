import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import perfkit
from perfkit.engine.trial import READY
from perfkit.questions.data_pipeline.variants import VARIANTS
from perfkit.questions.shared import decoding
from perfkit.questions.shared.images import jpeg


def test_only_decoding_counts_every_image_and_ends_at_once(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(jpeg(0, 0))

    def look(_):
        limit = decoding.limit(SimpleNamespace(paths=(image,) * 3))
        ready, *ticks = itertools.islice(limit, 4)
        limit.close()
        return ready == READY, [tick.examples % 8 for tick in ticks]

    assert perfkit.fresh(look) == (True, [0, 0, 0])


SHAPES = [(65, 64, 3), (375, 500, 3)]


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


@pytest.mark.parametrize("name", ["naive map", "augment in model"])
def test_every_way_has_a_step_that_takes_its_batches(name, task):
    images, labels = next(iter(VARIANTS[name].build(task)))
    assert np.isfinite(VARIANTS[name].step(task)(images, labels))
