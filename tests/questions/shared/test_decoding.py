import itertools
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

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


def test_a_process_that_ends_early_is_said(tmp_path):
    with pytest.raises(RunError, match="that decode ended before its time"):
        decoded(tmp_path / "image", lambda: lambda file: 1 / 0)


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
