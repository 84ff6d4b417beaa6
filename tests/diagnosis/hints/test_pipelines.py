"""Pipelines in a wrong order, what they map, and Python in them; and the right ones."""

from tests.diagnosis.hints.seen import rules

DATA = """
import numpy as np
import tensorflow as tf
def rows():
    rng = np.random.default_rng(0)
    return tf.data.Dataset.from_tensor_slices(rng.normal(size=(4000, 8)))
"""
FUNCTIONS = """
def flipped(image):
    return tf.image.random_flip_left_right(image)
def noisy(image):
    return added(image)
def added(image):
    return image + tf.random.normal(image.shape)
def brighter(image):
    return tf.image.random_brightness(image, 0.1)
def scaled(image, label):
    return tf.cast(image, tf.float32) / 255, label
def resized(image):
    return tf.image.resize(image, (9, 9))
def decoded(file):
    return resized(tf.io.decode_jpeg(file))
def decoded_and_flipped(file):
    return flipped(decoded(file))
def stateless(image):
    return tf.image.stateless_random_flip_left_right(image, (1, 2))
augment = keras.Sequential([keras.layers.RandomFlip("horizontal")])
def decoded_and_augmented(file):
    return augment(decoded(file))
def decoded_and_stateless(file):
    return stateless(decoded(file))
def decoded_and_handed_on(file):
    return numpy_function(albumented, [decoded(file)], tf.float32)
def loaded(file):
    return random.random()
scale = keras.Sequential([keras.layers.Rescaling(1 / 255)])
"""
FILES = "d = tf.data.Dataset.list_files('*.jpeg')\n"
GENERATORS = """
def working():
    for line in lines:
        yield parsed(line)
def handing_over():
    for row in rows:
        yield row
"""
ITEMS = """
class Rows(keras.utils.PyDataset): # here
    def __init__(self):
        super().__init__({options})
    def __getitem__(self, index):
        return {item}
"""
EXPENSIVE = "[float(x) for x in lines[index]]"
HEAD = DATA + FUNCTIONS + GENERATORS
LOADED = """
(x, y), _ = keras.datasets.cifar10.load_data()
x = x.astype("float32") / 255
d = tf.data.Dataset.from_tensor_slices((x, y))
"""
HELPERS = """
def made(cached):
    d = tf.data.Dataset.list_files("*.jpeg").map(f, 2)
    if cached:
        d = d.repeat()
    return finished(d)
def finished(d):
    return d.cache().batch(8) # here
"""
EITHER = """
def prepared(d):
    d = {}
    if big():
        return {}
    return d.take(9)
m.fit(prepared(rows()).shuffle(900)) # here"""
BLIND = "o.experimental_optimization.apply_default_optimizations = False\n"
MISTAKES = {
    "into batches": [
        LOADED + "m.fit(d.cache(){+.batch(8)+}.prefetch(1))",
        "keras.Input((8,))\nm.fit(rows().take(9)) # here",
        "keras.Input((8,))\nm.fit(rows().cache()) # here",
    ],
    "whole batches": [
        "d{+.shuffle(9)+}.batch(8)[-.shuffle(9)-]",
        # The batches are cached, and their order still changes.
        "d = d{+.shuffle(9)+}.batch(8)\nd = d.cache()\nd = d.shuffle(9) # here",
        "d = d.batch(8)\nif big():\n    d = d.take(1)\nd = d.shuffle(9) # here",
        EITHER.format("d.batch(8)", "d"),
    ],
    "prefetch stands before map": (
        "d = d.batch(8)\nd = d.prefetch(1) # here\nd = d.map(f{+, 2+})"
        "{+\nd = d.prefetch(1)+}"
    ),
    "before map": "d.prefetch(1).map(f{+, AUTOTUNE+})",
    "once for each repetition": [
        "d{+.cache()+}.repeat()[-.cache()-]",
        # Functions and literal conditions are followed.
        HELPERS + "m.fit(made(cached=[-True-]{+False+}))",
    ],
    "never read to its end": "d[-.cache()-].take(9){+.cache()+}",
    "order of the first epoch": (
        "m.fit(rows(){+.cache()+}.shuffle(4000)[-.cache()-].batch(8))"
    ),
    "fewer than a batch of 8": "m.fit(rows().shuffle(4{+00+}).batch(8))",
    "20 examples at a time, of 4,000": "m.fit(rows().shuffle([-20-]{+n+}).batch(8))",
    "runs on the CPU": "with tf.device('/[-G-]{+C+}PU:0'):\n    d = d.map(f, 2) # here",
    "adds no prefetch of its own": (
        BLIND + "m.fit(rows().map(f, 2).batch(8){+.prefetch(1)+})"
    ),
    "A batch of 2": (
        "{+keras.layers.Conv2D(9)\n+}keras.layers.Dense(9)\n"
        "m.fit(rows().batch(2)) # here"
    ),
    "AUTOTUNE takes as": "d.map(f, [-num_parallel_calls=1-]{+2+})",
    # TensorFlow makes a map parallel by itself where nothing is random in it.
    "A map with random_flip_left_right": (
        "d = d.map([-flipped-]{+resized+})\nd = d.shuffle(9)"
    ),
    "A map with tf.random.normal": "d.map([-noisy-]{+stateless+}).shuffle(9)",
    "A map with RandomFlip": "d.map([-augment-]{+scale+}).shuffle(9)",
    "one stage of a map and its batch": (
        "d.map(resized{+, num_parallel_calls=n+}).batch(8)"
    ),
    "each epoch sees the same": "d{+.cache()+}.map(flipped, 2)[-.cache()-]",
    "one number for the whole batch": (
        "d{+.map(brighter, 2)+}.batch(8)[-.map(brighter, 2)-]"
    ),
    "batch first, then map": [
        "d[-.map(scaled, 2)-].batch(8){+.map(scaled, 2)+}",
        "d.map(lambda x: x / 255).batch(8) # here",
    ],
    "decode_jpeg runs for each example again": (
        FILES + "m.fit(d.map(decoded, 2){+.cache()+}.batch(8))"
    ),
    "every example gets the same": [
        "d.map(lambda x: x * [-np.random.rand()-]{+tf.random.uniform(())+}, 2)",
        "d.map(lambda x: x * random.random(), 2) # here",
        "dice = np.random.default_rng(0)\nd.map(lambda x: x * dice.random(), 2) # here",
    ],
    "py_function runs Python": (
        "d.map(lambda x: tf.[-py_function(f, [x], t)-]{+numpy(f)(x)+}, 2)"
    ),
    "This generator works in Python": (
        "d = tf.data.Dataset.from_generator("
        "[-working-]{+handing_over+}, output_signature=s)"
    ),
    "keeps it in memory": [
        "n = [-len(-]list(tf.data.TFRecordDataset(f).[-batch(8))-]{+take(2)+})",
        "d = Dataset.from_tensors(x)\nn = list(d.as_numpy_iterator()) # here",
    ],
    "in one worker": [
        ITEMS.format(options="{+workers=4+}", item=EXPENSIVE),
        ITEMS.format(
            options="{+**kwargs+}",
            item="[-np.load(files[index])-]{+rows[8 * index :]+}",
        ),
    ],
}
RIGHT = [
    # One more side than the model takes is the batch.
    DATA.replace("4000, 8", "40, 16, 8") + "keras.Input((8,))\nm.fit(rows())",
    # Who makes the arrays is not seen.
    "d = Dataset.from_tensor_slices(arrays())\nkeras.Input((8,))\nm.fit(d.cache())",
    # TensorFlow adds a prefetch.
    "m.fit(rows().map(f, 2).batch(8))",
    # What is mapped over something else.
    *("frame.map(f)", "rows.map(f, batched=True).batch(8)", "map(f, x)"),
    *("self.pool.map(loaded, files)", "threads.map(loaded, files[8 * n : 8 * n + 8])"),
    'table["id"].map(lambda _: random.randint(0, 4))',
    *("pool.map(resized, files)", "x = [random.random() for _ in range(9)]"),
    "d.map(resized, 2).cache()",
    # This one draws for each image of a batch.
    "d.batch(8).map(flipped, 2)",
    # Images of many sizes are decoded one by one.
    "d.map(decoded, 2).batch(8)",
    # Nothing may be cached here.
    *(
        FILES + f"m.fit(d.map(decoded_and_{drawn}, 2).batch(8))"
        for drawn in ("flipped", "augmented", "stateless", "handed_on")
    ),
    "from_outside = tf.data.Dataset.from_generator(unknown, output_signature=s)",
    "n = list(rows)\nfew = list(some().batch(8))",
    # Workers that are given where a dataset is made count.
    ITEMS.format(options="**options", item=EXPENSIVE) + "rows = Rows(workers=4)",
    # Which way it goes is not known, or what of two is returned.
    HELPERS + "m.fit(made(cached=yes()))",
    "if big():\n    d = d.batch(8)\nd = d.shuffle(9)",
    EITHER.format("d.take(99)", "d.batch(8)"),
    # A look at some of them is not what is trained on.
    "d = rows().batch(8).prefetch(1)\nother = d.map(f, 2)\nm.fit(d)",
    "d = rows().batch(8).cache()\nfor b in d.take(1):\n    print(b)\nm.fit(d)",
    FILES + "d = d.map(decoded, 2)\nfor b in d.take(1):\n    print(b)\n"
    "m.fit(d.cache().batch(8))",
    LOADED + "for b in d.take(1):\n    print(b)\nm.fit(d.cache().batch(8))",
    # What is cut into sequences and batched again was no batch of examples.
    "d.batch(101, drop_remainder=True).map(parted, 2).shuffle(9).batch(8)",
]
test_a_mistake_is_seen, test_what_is_right_is_not = rules(MISTAKES, RIGHT, HEAD)
