# organ_masks/helpers.py, fixed by hand: the loss is given the distance maps
"""Losses for masks."""

import numpy as np
import tensorflow as tf
from scipy.ndimage import distance_transform_edt
from tensorflow import keras


def distance_maps(masks, organs):
    """How far each pixel is from the organ's boundary, negative within the organ."""
    maps = np.zeros((*masks.shape, organs), "float32")
    for n, mask in enumerate(masks):
        for organ in range(organs):
            inside = mask == organ
            if inside.any():
                outer = distance_transform_edt(~inside) * ~inside
                inner = (distance_transform_edt(inside) - 1) * inside
                maps[n, ..., organ] = outer - inner
    return maps


class OrganLoss(keras.losses.Loss):
    """Cross-entropy, and the distance of what lies on the wrong side."""

    def __init__(self, organs, boundary):
        super().__init__(name="organ_loss")
        self.organs = organs
        self.boundary = boundary

    def call(self, truth, logits):
        masks = tf.cast(truth[..., 0], tf.int32)
        distance = truth[..., 1:]
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(masks, logits)
        wrong = tf.reduce_sum(tf.nn.softmax(logits) * distance, axis=-1)
        return entropy + self.boundary * wrong
