"""What the panel is asked: name, number of outputs, kind of loss, weight."""

from typing import NamedTuple

import tensorflow as tf


class Task(NamedTuple):
    name: str
    outputs: int
    kind: str
    weight: float


TASKS = (
    Task("death", 1, "yes_no", 1.0),
    Task("sepsis", 1, "yes_no", 1.0),
    Task("ventilation", 1, "yes_no", 0.7),
    Task("days_left", 1, "amount", 0.5),
    Task("lactate", 1, "amount", 0.5),
    Task("phenotypes", 12, "yes_no", 1.0),
)


def task_loss(task, truth, output):
    if task.kind == "yes_no":
        each = tf.nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=output)
    else:
        gap = tf.abs(truth - output)
        each = tf.where(gap < 1.0, 0.5 * gap**2, gap - 0.5)
    return task.weight * tf.reduce_mean(each)
