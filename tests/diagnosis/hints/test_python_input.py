"""Python that makes the examples, dear or cheap."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

GENERATORS = """
def working():
    for line in lines:
        yield parsed(line)
def handing_over():
    for row in rows:
        yield row
"""
ITEMS = """
class Rows(keras.utils.PyDataset): {mark}
    def __init__(self):
        super().__init__({options})
    def __getitem__(self, index):
        return {item}
"""
DEAR = "[float(x) for x in lines[index]]"
KNOWN = [
    (
        "d.map(lambda x: tf.py_function(f, [x], t), 2) # here",
        "py_function runs Python",
        "d.map(lambda x: tf.numpy(f)(x), 2)",
    ),
    (
        "d = tf.data.Dataset.from_generator(working, output_signature=s) # here",
        "This generator works in Python",
        "d = tf.data.Dataset.from_generator(handing_over, output_signature=s)",
    ),
    (
        "d = tf.data.Dataset.from_generator(working, output_signature=s) # here",
        "This generator works in Python",
        "from_outside = tf.data.Dataset.from_generator(unknown, output_signature=s)",
    ),
    (
        "n = len(list(tf.data.TFRecordDataset(f).batch(8))) # here",
        "keeps it in memory",
        "n = list(tf.data.TFRecordDataset(f).take(2))",
    ),
    (
        "d = Dataset.from_tensors(x)\nn = list(d.as_numpy_iterator()) # here",
        "keeps it in memory",
        "n = list(rows)\nfew = list(some().batch(8))",
    ),
    (
        ITEMS.format(mark="# here", options="", item=DEAR),
        "in one worker",
        ITEMS.format(mark="", options="workers=4", item=DEAR),
    ),
    (
        ITEMS.format(mark="# here", options="", item="np.load(files[index])"),
        "in one worker",
        ITEMS.format(mark="", options="**kwargs", item="rows[8 * index :]"),
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_python_is_seen_where_it_works_for_each_example(mistake, said, right):
    only_here(GENERATORS + mistake, said)
    nothing_in(GENERATORS + right)


def test_workers_that_are_given_where_a_dataset_is_made_count():
    source = ITEMS.format(mark="", options="**options", item=DEAR)
    nothing_in(source + "rows = Rows(workers=4)")
