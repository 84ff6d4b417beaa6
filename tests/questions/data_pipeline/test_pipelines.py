import dataclasses
import itertools

import numpy as np
import pytest
from PIL import Image

from perfkit.questions.data_pipeline import variants, work
from perfkit.questions.data_pipeline.variants import GROUPS, VARIANTS
from perfkit.questions.data_pipeline.work import PARTS, Again, schedule
from perfkit.questions.shared.images import look_at


def batches(method, task, count):
    taken = itertools.islice(iter(VARIANTS[method].build(task)), count)
    return [(np.asarray(images), np.asarray(labels)) for images, labels in taken]


def test_what_is_random_or_left_to_the_model_still_gives_photographs(task):
    [(images, _)] = batches("random in map", task, 1)
    assert images.shape == (task.batch, task.side, task.side, 3)
    assert -0.1 <= images.min() < 0.2
    assert 0.5 < images.max() <= 1.1
    [(cut, _)] = batches("augment in model", task, 1)
    [(all_done, _)] = batches("naive map", task, 1)
    for one, other in zip(cut, all_done, strict=True):
        brighter = other.mean() - one.mean()
        methods = [one + brighter, one[:, ::-1] + brighter]
        assert min(abs(one - other).max() for one in methods) < 1e-3


@pytest.mark.parametrize(("method", "differ"), [("cache", 0.9), ("frozen cache", 0.0)])
def test_a_cache_augments_anew_and_the_trap_does_not(method, differ, task):
    count = len(task.images.paths) // task.batch
    first, *_, again = batches(method, task, count + 1)
    assert list(first[1]) == list(again[1])
    assert differ <= (first[0] != again[0]).mean() <= 2 * differ
    assert bool(VARIANTS[method].excluded) is (differ == 0)


def test_a_png_goes_through_the_way_that_decodes_only_a_square(run, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 255, (70, 90, 3), "uint8")
    Image.fromarray(pixels).save(tmp_path / "a.png")
    images = run(look_at(tmp_path, count=1, side=64))[1]
    task = work.Task(images=images, side=64, batch=3)
    assert work.differences([VARIANTS["crop while decoding"]], task) == {}


def test_a_way_that_gives_something_else_is_found_out(task):
    method = VARIANTS["python generator"]

    def darker():
        for images, labels in method.build(task):
            yield images * 0.97, labels

    def late():
        return itertools.islice(method.build(task), 1, None)

    for start in (darker, late):
        guilty = dataclasses.replace(method, function=lambda start=start: Again(start))
        found = work.differences([guilty, VARIANTS["naive map"]], task)
        assert list(found) == ["python generator"]
        assert "pixels differ by 0." in found["python generator"]
    smaller = dataclasses.replace(task, side=48)
    guilty = dataclasses.replace(
        VARIANTS["naive map"], function=lambda: VARIANTS["naive map"].build(smaller)
    )
    found = work.differences([guilty], task)
    assert "shape (48, 48, 3) instead of (64, 64, 3)" in found["naive map"]


def test_every_image_comes_once_each_time_round_with_its_label_in_another_order(task):
    paths, labels, drawn = schedule(task)
    count = len(task.images.paths)
    rounds = paths.reshape(-1, count)
    assert [path.decode() for path in rounds[0]] == list(task.images.paths)
    assert len(paths) == len(drawn) >= 4096
    assert all(set(one) == set(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds[:10]}) == 10
    label_of = dict(zip(task.images.paths, task.images.labels, strict=True))
    assert [label_of[path.decode()] for path in paths[:200]] == list(labels[:200])
    endless = PARTS["files"](task, "").skip(len(paths) - 2).take(4)
    files, _, numbers = zip(*endless.as_numpy_iterator(), strict=True)
    assert list(files) == [*paths[-2:], *paths[:2]]
    np.testing.assert_array_equal(numbers[2], drawn[0])


def test_ways_say_what_they_change_and_groups_hold_what_they_stand_against():
    limits = {work.BASELINE, variants.SYNTHETIC, variants.DECODE_LIMIT}
    for method in VARIANTS.values():
        assert method.do.endswith(".")
        assert method.code.endswith(method.advice)
        assert method.against in VARIANTS
    for group in GROUPS.values():
        assert limits <= set(group)
        against = {VARIANTS[name].against for name in set(group) & set(VARIANTS)}
        assert against <= {*group, "parallel map"}
    grouped = {name for group in GROUPS if group != "all" for name in GROUPS[group]}
    assert set(VARIANTS) <= grouped
    assert not set(GROUPS) & {*VARIANTS, *limits}
