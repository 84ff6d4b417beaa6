"""What mapped functions do where it is a mistake, and where it is none."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

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
scale = keras.Sequential([keras.layers.Rescaling(1 / 255)])
"""
FILES = "d = tf.data.Dataset.list_files('*.jpeg')\n"
KNOWN = [
    ("d.map(f, num_parallel_calls=1) # here", "AUTOTUNE takes as", "d.map(f, 2)"),
    (
        "d = d.map(flipped) # here\nd = d.shuffle(9)",
        "A map with random_flip_left_right",
        # TensorFlow makes a map parallel by itself where nothing is random in it.
        "d = d.map(resized)\nd = d.shuffle(9)",
    ),
    (
        "d.map(noisy).shuffle(9) # here",
        "A map with tf.random.normal",
        "d.map(stateless).shuffle(9)",
    ),
    (
        "d.map(augment).shuffle(9) # here",
        "A map with RandomFlip",
        "d.map(scale).shuffle(9)",
    ),
    (
        "d.map(resized).batch(8) # here",
        "one stage of a map and its batch",
        "d.map(resized, num_parallel_calls=n).batch(8)",
    ),
    (
        "d.map(flipped, 2).cache() # here",
        "each epoch sees the same",
        "d.cache().map(flipped, 2)",
    ),
    (
        "d.map(flipped, 2).cache() # here",
        "each epoch sees the same",
        "d.map(resized, 2).cache()",
    ),
    (
        "d.batch(8).map(brighter, 2) # here",
        "one number for the whole batch",
        "d.map(brighter, 2).batch(8)",
    ),
    (
        "d.batch(8).map(brighter, 2) # here",
        "one number for the whole batch",
        # This one draws for each image of a batch.
        "d.batch(8).map(flipped, 2)",
    ),
    (
        "d.map(scaled, 2).batch(8) # here",
        "batch first, then map",
        "d.batch(8).map(scaled, 2)",
    ),
    (
        "d.map(lambda x: x / 255).batch(8) # here",
        "batch first, then map",
        # Images of many sizes are decoded one by one.
        "d.map(decoded, 2).batch(8)",
    ),
    (
        FILES + "m.fit(d.map(decoded, 2).batch(8)) # here",
        "decode_jpeg runs for each example again",
        FILES + "m.fit(d.map(decoded, 2).cache().batch(8))",
    ),
    (
        FILES + "m.fit(d.map(decoded, 2).batch(8)) # here",
        "decode_jpeg runs for each example again",
        # Nothing may be cached here.
        FILES + "m.fit(d.map(decoded_and_flipped, 2).batch(8))",
    ),
    (
        "d.map(lambda x: x * np.random.rand(), 2) # here",
        "every example gets the same",
        "d.map(lambda x: x * tf.random.uniform(()), 2)",
    ),
    (
        "d.map(lambda x: x * random.random(), 2) # here",
        "every example gets the same",
        "x = [random.random() for _ in range(9)]",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_a_map_that_is_often_a_mistake_is_seen_and_one_near_it_is_not(
    mistake, said, right
):
    only_here(FUNCTIONS + mistake, said)
    nothing_in(FUNCTIONS + right)


@pytest.mark.parametrize(
    "right",
    [
        "frame.map(f)",
        "rows.map(f, batched=True).batch(8)",
        "pool.map(resized, files)",
        "map(f, x)",
    ],
)
def test_what_is_mapped_over_something_else_is_left_alone(right):
    nothing_in(FUNCTIONS + right)
