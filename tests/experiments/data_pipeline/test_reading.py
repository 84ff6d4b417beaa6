import numpy as np

from perfkit.experiments.data_pipeline.work import files, schedule


def test_the_first_time_round_the_order_is_that_of_the_list(task):
    paths, labels, _ = schedule(task)
    count = len(task.images.paths)
    assert [path.decode() for path in paths[:count]] == list(task.images.paths)
    assert list(labels[:count]) == list(task.images.labels)


def test_each_time_round_every_image_comes_once_in_another_order(task):
    paths, _, drawn = schedule(task)
    count = len(task.images.paths)
    rounds = paths.reshape(-1, count)
    assert len(paths) == len(drawn) >= 4096
    assert all(set(one) == set(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds[:10]}) == 10


def test_labels_stay_with_their_images(task):
    paths, labels, _ = schedule(task)
    label_of = dict(zip(task.images.paths, task.images.labels, strict=True))
    for path, label in zip(paths[:200], labels[:200], strict=True):
        assert label_of[path.decode()] == label


def test_the_data_set_is_the_schedule_and_never_ends(task):
    paths, labels, drawn = schedule(task)
    some = list(files(task).skip(len(paths) - 2).take(4).as_numpy_iterator())
    assert [path for path, _, _ in some] == [*paths[-2:], *paths[:2]]
    assert [label for _, label, _ in some] == [*labels[-2:], *labels[:2]]
    np.testing.assert_array_equal([d for _, _, d in some][2], drawn[0])
