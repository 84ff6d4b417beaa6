"""From the survey's tiles to batches of crops."""

import tensorflow as tf

CROP = 96
CROPS_PER_TILE = 4


def decode(file, species):
    tile = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tile, species


def vary(tile, species):
    """Sun, haze and season differ from flight to flight; each epoch shows another spot."""
    tile = tf.image.convert_image_dtype(tile, tf.float32)
    tile = tf.image.random_hue(tile, 0.06)
    tile = tf.image.random_saturation(tile, 0.6, 1.4)
    tile = tf.image.random_brightness(tile, 0.15)
    crop = tf.image.random_crop(tile, (CROP, CROP, 3))
    crop = tf.image.random_flip_left_right(crop)
    crop = tf.image.random_flip_up_down(crop)
    return crop, species


def centre(tile, species):
    tile = tf.image.convert_image_dtype(tile, tf.float32)
    return tf.image.resize_with_crop_or_pad(tile, CROP, CROP), species


def training_crops(files, species, batch):
    tiles = tf.data.Dataset.from_tensor_slices((files, species))
    tiles = tiles.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
    tiles = tiles.shuffle(len(files)).repeat(CROPS_PER_TILE)
    crops = tiles.map(vary, num_parallel_calls=tf.data.AUTOTUNE)
    return crops.batch(batch).prefetch(tf.data.AUTOTUNE)


def held_out_crops(files, species, batch):
    tiles = tf.data.Dataset.from_tensor_slices((files, species))
    crops = tiles.map(decode, num_parallel_calls=tf.data.AUTOTUNE).map(centre)
    return crops.batch(batch).cache()
