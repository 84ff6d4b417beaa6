import dataclasses
import itertools

import numpy as np
import pytest

from perfkit.experiments.data_pipeline import work
from perfkit.experiments.data_pipeline.variants import VARIANTS

COMPARABLE = [one.name for one in VARIANTS.values() if work.comparable(one)]


@pytest.fixture
def forms(run, images):
    for form in work.FORMS:
        run(work.make(images, form))


def batches(method, task, count):
    taken = itertools.islice(iter(VARIANTS[method].build(task)), count)
    return [(np.asarray(images), np.asarray(labels)) for images, labels in taken]


@pytest.mark.parametrize("name", COMPARABLE)
def test_a_way_gives_the_images_that_all_ways_give(name, task, forms):
    assert work.differences([VARIANTS[name]], task) == {}


def test_all_ways_but_those_with_other_random_numbers_are_compared():
    assert set(VARIANTS) - set(COMPARABLE) == {"random in map", "augment in model"}


@pytest.mark.parametrize("name", [n for n, one in VARIANTS.items() if one.ordered])
def test_a_way_gives_the_labels_in_the_order_of_the_images(name, task, forms):
    _, labels = next(iter(VARIANTS[name].build(task)))
    assert list(np.asarray(labels)) == list(task.images.labels[: task.batch])


def test_random_numbers_of_ones_own_still_give_a_square_of_a_photograph(task):
    [(images, _)] = batches("random in map", task, 1)
    assert images.shape == (task.batch, task.side, task.side, 3)
    assert -0.1 <= images.min() < 0.2
    assert 0.5 < images.max() <= 1.1


def test_what_is_left_to_the_model_is_mirroring_and_brightness(task):
    [(cut, _)] = batches("augment in model", task, 1)
    [(all_done, _)] = batches("naive map", task, 1)
    for one, other in zip(cut, all_done, strict=True):
        brighter = other.mean() - one.mean()
        methods = [one + brighter, one[:, ::-1] + brighter]
        assert min(abs(one - other).max() for one in methods) < 1e-3


@pytest.mark.parametrize(("method", "differ"), [("cache", 0.9), ("frozen cache", 0.0)])
def test_a_cache_of_decoded_images_augments_them_anew_and_the_trap_does_not(
    method, differ, task
):
    count = len(task.images.paths) // task.batch
    first, *_, again = batches(method, task, count + 1)
    assert list(first[1]) == list(again[1])
    assert differ <= (first[0] != again[0]).mean() <= 2 * differ
    assert bool(VARIANTS[method].excluded) is (differ == 0)


def test_a_png_goes_through_the_way_that_decodes_only_a_square(run, tmp_path):
    from PIL import Image

    from perfkit.experiments.data_pipeline.work import Task
    from perfkit.experiments.shared.images import look_at

    pixels = np.random.default_rng(1).integers(0, 255, (70, 90, 3), "uint8")
    Image.fromarray(pixels).save(tmp_path / "a.png")
    images = run(look_at(tmp_path, count=1, side=64))[1]
    task = Task(images=images, side=64, batch=3)
    assert work.differences([VARIANTS["crop while decoding"]], task) == {}


def test_a_way_that_gives_something_else_is_found_out(task):
    class Darker:
        def __init__(self, task):
            self.task = task

        def __iter__(self):
            for images, labels in VARIANTS["python generator"].build(self.task):
                yield images * 0.97, labels

    class Late(Darker):
        def __iter__(self):
            honest = iter(VARIANTS["python generator"].build(self.task))
            next(honest)
            yield from honest

    for kind in (Darker, Late):
        guilty = dataclasses.replace(VARIANTS["python generator"], build=kind)
        found = work.differences([guilty, VARIANTS["naive map"]], task)
        assert list(found) == ["python generator"]
        assert "pixels differ by 0." in found["python generator"]


def test_images_of_another_size_are_found_out(task):
    smaller = dataclasses.replace(task, side=48)
    guilty = dataclasses.replace(
        VARIANTS["naive map"], build=lambda _: VARIANTS["naive map"].build(smaller)
    )
    found = work.differences([guilty], task)
    assert "shape (48, 48, 3) instead of (64, 64, 3)" in found["naive map"]
