import os

import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadFileError, MissingPartError
from perfkit.experiments.data_pipeline import work
from perfkit.experiments.shared import cache


def read(images, form):
    parsed = [
        work.parse(r) for r in tf.data.TFRecordDataset(work.made_files(images, form))
    ]
    return [{name: value.numpy() for name, value in one.items()} for one in parsed]


def test_records_hold_the_bytes_of_the_files_in_their_order(run, images):
    run(work.make(images, "jpeg"))
    found = read(images, "jpeg")
    assert [one["label"] for one in found] == list(images.labels)
    for one, path in zip(found, images.paths, strict=True):
        with open(path, "rb") as file:
            assert one["image"] == file.read()


def test_records_of_pixels_hold_what_the_files_decode_to(run, images):
    run(work.make(images, "raw"))
    for one, path in zip(read(images, "raw"), images.paths, strict=True):
        pixels = np.frombuffer(one["image"], "uint8")
        shape = (one["height"], one["width"], 3)
        wanted = tf.io.decode_jpeg(tf.io.read_file(path)).numpy()
        np.testing.assert_array_equal(pixels.reshape(shape), wanted)


def test_shards_share_the_images_out_in_turns(run, images):
    run(work.make(images, "shards"))
    names = work.made_files(images, "shards")
    assert len(names) == 8
    sizes = [sum(1 for _ in tf.data.TFRecordDataset(name)) for name in names]
    assert sizes == [2, 2, 2, 2, 1, 1, 1, 1]


def test_they_are_written_once(run, images):
    run(work.make(images, "jpeg"))
    assert run(work.make(images, "jpeg"))[0] == []


def test_lost_files_are_said_in_a_sentence(images, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    with pytest.raises(BadFileError, match="run again to remake them"):
        work.made_files(images, "jpeg")


def test_a_disk_that_is_full_for_tensorflow_is_full_for_the_reader(
    run, images, monkeypatch, tmp_path
):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))

    class Full(tf.io.TFRecordWriter):
        def write(self, record):
            raise tf.errors.ResourceExhaustedError(
                None, None, f"{tmp_path}/x; No space left on device"
            )

    monkeypatch.setattr(tf.io, "TFRecordWriter", Full)
    with pytest.raises(MissingPartError, match="No room for the TFRecord files"):
        run(work.make(images, "jpeg"))
    assert os.listdir(tmp_path) == []
