"""Stands for Keras 3 on JAX: a linear model, trained by NumPy, and the callbacks."""

from types import SimpleNamespace

import numpy as np

__version__ = "3.0.0"
config = SimpleNamespace(backend=lambda: "jax")
utils = SimpleNamespace(Sequence=type("Sequence", (), {}))


class LambdaCallback:
    def __init__(self, **hooks):
        vars(self).update(hooks)

    def __getattr__(self, name):
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *arguments: None


class CallbackList:
    callbacks = ()


kinds = ("ModelCheckpoint", "CSVLogger", "TensorBoard", "BackupAndRestore")
callbacks = SimpleNamespace(
    LambdaCallback=LambdaCallback,
    CallbackList=CallbackList,
    **{n: type(n, (), {}) for n in (*kinds, "EarlyStopping", "TerminateOnNaN")},
)
losses = SimpleNamespace(get=lambda loss: loss)
optimizers = SimpleNamespace(
    schedules=SimpleNamespace(LearningRateSchedule=type("LearningRateSchedule", (), {}))
)


class SGD:
    learning_rate = 0.1


class Model:
    """Learns ``y = x @ w``; counting its steps as Keras does."""

    name, loss, layers, built, compiled = "linear", "mse", (), True, True
    run_eagerly, jit_compile, steps_per_execution = False, True, 1
    optimizer = SGD()

    def __init__(self, start):
        self.weights = [np.full((4, 1), start)]

    def get_weights(self):
        return [weight.copy() for weight in self.weights]

    def set_weights(self, weights):
        self.weights = [weight.copy() for weight in weights]

    def _flatten_layers(self):
        return [self]

    def reset_metrics(self):
        pass

    def train_step(self, x, y):
        error = x @ self.weights[0] - y
        self.weights[0] -= 0.1 * x.T @ error / len(x)
        return float((error**2).mean())

    def train_on_batch(self, x, y, sample_weight, return_dict):
        return {"loss": self.train_step(x, y)}

    def test_on_batch(self, x, y, sample_weight, return_dict):
        return {"loss": float(((x @ self.weights[0] - y) ** 2).mean())}

    def fit(self, x, y, batch_size, callbacks=(), epochs=1, **options):
        """Train, and call the callbacks when Keras does."""

        def call(hook, *arguments):
            for callback in callbacks:
                getattr(callback, f"on_{hook}")(*arguments)

        for callback in callbacks:
            callback.model = self
        call("train_begin", None)
        for epoch in range(epochs):
            call("epoch_begin", epoch, None)
            self.stop_training = False
            for step, begin in enumerate(range(0, len(x), batch_size)):
                rows = slice(begin, begin + batch_size)
                call(
                    "train_batch_end", step, {"loss": self.train_step(x[rows], y[rows])}
                )
                if self.stop_training:
                    break
            call("epoch_end", epoch, None)
            if self.stop_training:
                break
