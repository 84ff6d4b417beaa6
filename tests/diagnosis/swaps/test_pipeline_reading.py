import tensorflow as tf

from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.pipeline.facts import pipeline_facts
from perfkit.diagnosis.swap import Swap
from perfkit.diagnosis.swaps import pipeline
from perfkit.diagnosis.training import Training

DATA = tf.data.Dataset


def files(folder, count=4):
    names = []
    for number in range(count):
        path = folder / f"class-{number % 2}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {number}")
        names.append(str(path))
    return names


def records(folder, count=12):
    path = str(folder / "some.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(count):
            writer.write(f"record {number:02d}")
    return path


def found(dataset):
    known = pipeline_facts(Training(None, dataset))
    facts = Facts(data="tf.data", steps=4, step_s=0.1, pipeline=known)
    return list(pipeline.slow_read(facts))


def test_records_are_kept_behind_their_reader_and_read_once(tmp_path):
    path = records(tmp_path)
    dataset = tf.data.TFRecordDataset(path).map(tf.strings.length).batch(3)
    (swap,) = found(dataset)
    training = Training(None, dataset)
    swap.apply(training)
    (tmp_path / "some.tfrecord").unlink()
    assert next(iter(training.data)).numpy().tolist() == [9, 9, 9]


def test_the_number_of_records_is_guessed_from_the_size_of_the_file(tmp_path):
    path = records(tmp_path)
    dataset = tf.data.TFRecordDataset(path).map(tf.strings.length).batch(3)
    known = pipeline_facts(Training(None, dataset))
    # Twelve numbers of four bytes.
    assert known["bytes"] == 48


def label_and_text(name):
    return tf.strings.split(name, "/")[-2], tf.io.read_file(name)


def test_files_are_read_from_copies_whose_folders_keep_their_names(tmp_path):
    dataset = DATA.from_tensor_slices(files(tmp_path)).map(label_and_text).batch(2)
    before = [[part.numpy().tolist() for part in batch] for batch in dataset]
    (swap,) = found(dataset)
    training = Training(None, dataset)
    swap.apply(training)
    for path in tmp_path.rglob("*.txt"):
        path.unlink()
    after = [[part.numpy().tolist() for part in batch] for batch in training.data]
    assert after == before


def test_what_reads_and_works_in_one_stage_cannot_be_told_apart(tmp_path):
    names = DATA.from_tensor_slices(files(tmp_path))
    texts = DATA.zip((names.map(tf.io.read_file), names))
    (untested,) = found(texts.batch(2))
    assert "in one stage" in untested.why


def test_what_reads_nothing_has_nothing_to_offer():
    assert found(DATA.range(3)) == []


def test_a_cache_behind_the_work_is_not_combined_with_this(tmp_path):
    lengths = tf.data.TFRecordDataset(records(tmp_path)).map(tf.strings.length)
    (swap,) = found(lengths)
    assert isinstance(swap, Swap)
    assert not swap.combines
    drawn = lengths.map(lambda x: x)
    assert not found(drawn)[0].combines
    random = tf.data.TFRecordDataset(records(tmp_path)).map(
        lambda text: tf.strings.length(text) + tf.random.uniform((), 0, 9, tf.int32)
    )
    assert found(random)[0].combines
