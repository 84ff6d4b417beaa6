import io
import json
import os

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from perfkit.errors import BadFileError, BadParameterError, MissingPartError
from perfkit.questions.shared import cache
from perfkit.questions.shared import images as shared_images
from perfkit.questions.shared.images import look_at, recall
from tests.questions.conftest import ended


def encoded(form, size=(90, 80), mode="RGB", **options):
    pixels = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), "uint8")
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, form, **options)
    return out.getvalue()


GOOD = {
    "cats/plain.jpg": encoded("JPEG"),
    "cats/UPPER.JPEG": encoded("JPEG"),
    "cats/deep/er/progressive.jpg": encoded("JPEG", progressive=True),
    "cats/grey.jpg": encoded("JPEG", mode="L"),
    "dogs/cmyk.jpg": encoded("JPEG", mode="CMYK"),
    "dogs/a b ü.png": encoded("PNG"),
    "dogs/alpha.png": encoded("PNG", mode="RGBA"),
    "dogs/palette.png": encoded("PNG", mode="P"),
    "dogs/png inside.jpg": encoded("PNG"),
}
BAD = {
    "cats/empty.jpg": (b"", "empty"),
    "cats/text.jpg": (b"not an image at all", "no image"),
    "dogs/gif.jpg": (encoded("GIF"), "GIF inside, whatever the name says"),
    "dogs/webp.jpg": (encoded("WEBP"), "WEBP inside, whatever the name says"),
    "dogs/tiny.png": (encoded("PNG", size=(90, 63)), "smaller than 64 px"),
    "dogs/cut short.jpg": (GOOD["cats/plain.jpg"][:-400], "broken or cut short"),
    "dogs/cut short.png": (GOOD["dogs/a b ü.png"][:-400], "broken or cut short"),
    "dogs/header only.jpg": (GOOD["cats/plain.jpg"][:24], None),
}
NO_IMAGES = ("cats/notes.txt", "cats/._plain.jpg")


@pytest.fixture
def folder(tmp_path):
    files = GOOD | {name: contents for name, (contents, _) in BAD.items()}
    for name, contents in (files | dict.fromkeys(NO_IMAGES, b"text")).items():
        path = tmp_path / "mixed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
    (tmp_path / "mixed" / "dogs" / "gone.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "mixed" / "folder.jpg").mkdir()
    return tmp_path / "mixed"


def look(folder, count=100, side=64):
    return ended(look_at(folder, count=count, side=side))[1]


def names(folder, images):
    return {os.path.relpath(path, folder) for path in images.paths}


def test_images_are_found_by_class_and_what_is_left_out_is_named(folder):
    images = look(folder)
    assert names(folder, images) == set(GOOD)
    assert images.classes == ("cats", "dogs")
    for path, label in zip(images.paths, images.labels, strict=True):
        assert images.classes[label] == os.path.relpath(path, folder).split(os.sep)[0]
    why = {name: reason for reason, many in images.skipped.items() for name in many}
    assert set(why) == {*BAD, "dogs/gone.jpg"}
    assert why["dogs/gone.jpg"] == "unreadable"
    for name, (_, reason) in BAD.items():
        assert reason in (why[name], None)
    facts = images.describe()
    assert (facts["skipped"], facts["found"]) == (len(why), len(GOOD) + len(why))
    assert set(facts["skipped_names"]) == set(map(os.path.basename, why))
    assert json.loads(json.dumps(facts)) == facts
    assert look(folder, count=4) == look(folder, count=4)
    assert len(look(folder, count=4).paths) == 4


def test_a_name_that_is_no_text_is_not_in_the_way(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"odd \xff.jpg")).write_bytes(GOOD["cats/plain.jpg"])
        (tmp_path / os.fsdecode(b"bad \xff.jpg")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system takes no such names")
    images = look(tmp_path)
    assert len(images.paths) == 1
    assert recall(tmp_path, count=100, side=64) == images
    images.describe()["skipped_names"][0].encode()


def test_trials_recall_what_was_looked_at_and_other_contents_have_another_key(
    folder, own_cache
):
    first = look(folder)
    assert recall(folder, count=100, side=64) == first
    before = first.key
    (folder / "cats/plain.jpg").write_bytes(encoded("JPEG", size=(95, 85)))
    assert first.key != before
    for text in ("[1, 2", "7", '{"form": 1}', '{"form": 0, "images": {}}'):
        for path in (own_cache / "lists").iterdir():
            path.write_text(text)
        with pytest.raises(BadFileError, match="run again to remake it"):
            recall(folder, count=100, side=64)


@pytest.mark.parametrize(
    ("name", "contents", "why"),
    [
        ("notes.txt", b"nothing", r"There is no image \(.jpg, .jpeg, .png"),
        ("a.jpg", b"", r"can be used \(1 empty\); give another"),
        ("a.png", encoded("PNG"), "choose a smaller image_side"),
    ],
)
def test_a_folder_of_nothing_to_use_is_said(tmp_path, name, contents, why):
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(BadParameterError, match=why):
        look(tmp_path, side=81)
    # No list is kept of it.
    with pytest.raises(BadFileError, match="run again to remake it"):
        recall(tmp_path, count=100, side=81)


def read(images, form):
    records = tf.data.TFRecordDataset(shared_images.record_file(images, form))
    parsed = [shared_images.parse_record(record) for record in records]
    return [{name: value.numpy() for name, value in one.items()} for one in parsed]


def test_records_hold_the_files_in_their_order_and_are_written_once(images):
    for form in ("jpeg", "raw"):
        ended(shared_images.make_records(images, form))
    assert ended(shared_images.make_records(images, "jpeg"))[0] == []
    both = read(images, "jpeg"), read(images, "raw")
    for path, label, file, pixels in zip(
        images.paths, images.labels, *both, strict=True
    ):
        assert file["label"] == pixels["label"] == label
        assert file["image"] == tf.io.read_file(path).numpy()
        shape = (pixels["height"], pixels["width"], 3)
        decoded = np.frombuffer(pixels["image"], "uint8").reshape(shape)
        np.testing.assert_array_equal(decoded, tf.io.decode_jpeg(file["image"]))


def test_a_disk_full_for_tensorflow_is_said_to_be(images, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))

    class Full(tf.io.TFRecordWriter):
        def write(self, record):
            raise tf.errors.ResourceExhaustedError(
                None, None, f"{tmp_path}/x; No space left on device"
            )

    monkeypatch.setattr(tf.io, "TFRecordWriter", Full)
    with pytest.raises(MissingPartError, match="No room for the TFRecord file"):
        ended(shared_images.make_records(images, "jpeg"))
    assert os.listdir(tmp_path) == []
