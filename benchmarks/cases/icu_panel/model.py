"""A convolutional trunk over the vitals with one head for each task."""

import keras
import tensorflow as tf
from keras import layers
from tasks import task_loss


class Block(layers.Layer):
    """Two convolutions over time with a way around them."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Conv1D(width, 5, padding="same", activation="relu")
        self.second = layers.Conv1D(width, 5, padding="same")
        self.norm = layers.LayerNormalization()

    def call(self, x):
        return self.norm(x + self.second(self.first(x)))


class Panel(keras.Model):
    def __init__(self, tasks, width, depth, **kwargs):
        super().__init__(**kwargs)
        self.tasks = tasks
        self.entry = layers.Conv1D(width, 5, padding="same", activation="relu")
        self.blocks = [Block(width) for _ in range(depth)]
        self.pool = layers.GlobalAveragePooling1D()
        self.heads = {task.name: layers.Dense(task.outputs, name=task.name) for task in tasks}
        self.loss_means = {task.name: keras.metrics.Mean(name=task.name) for task in tasks}

    @property
    def metrics(self):
        return list(self.loss_means.values())

    def call(self, x):
        x = self.entry(x)
        for block in self.blocks:
            x = block(x)
        x = self.pool(x)
        return {name: head(x) for name, head in self.heads.items()}

    def losses_by_task(self, y, outputs):
        return {
            task.name: task_loss(task, y[task.name], outputs[task.name]) for task in self.tasks
        }

    def record(self, losses):
        for name, loss in losses.items():
            self.loss_means[name].update_state(loss)
        return {name: mean.result() for name, mean in self.loss_means.items()}

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            outputs = self(x, training=True)
            losses = self.losses_by_task(y, outputs)

        weights = self.trainable_variables
        total = [tf.zeros_like(w) for w in weights]
        for loss in losses.values():
            gradients = tape.gradient(loss, weights)
            # A head has no gradient from the losses of the other tasks.
            total = [t if g is None else t + g for t, g in zip(total, gradients)]
        del tape

        total, _ = tf.clip_by_global_norm(total, 5.0)
        self.optimizer.apply_gradients(zip(total, weights))
        return self.record(losses)

    def test_step(self, data):
        x, y = data
        return self.record(self.losses_by_task(y, self(x, training=False)))
