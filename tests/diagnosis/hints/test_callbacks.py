"""What callbacks do at every batch, and what they do now and then."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

CALLBACK = """
class Watching(keras.callbacks.Callback):
    def {hook}(self, batch, logs=None):
        {does}
"""


def callback(does, hook="on_train_batch_end"):
    return CALLBACK.format(hook=hook, does=does)


KNOWN = [
    (callback("print(logs) # here"), "prints a line", callback("self.logs = logs")),
    (
        callback("print(logs) # here"),
        "prints a line",
        callback("if batch % 100 == 0: print(logs)"),
    ),
    (
        callback("self.kept = self.model.get_weights() # here"),
        "copies all weights",
        callback("self.kept = self.model.get_weights()", "on_epoch_end"),
    ),
    (
        callback("self.model.evaluate(x) # here"),
        "evaluates the model",
        callback("self.history.evaluate(x)"),
    ),
    (
        callback("if batch % self.every == 0: print(logs) # here")
        + "Watching(every=1)",
        "prints a line",
        callback("if batch % self.every == 0: print(logs)") + "Watching(every=50)",
    ),
    (
        "callbacks.LambdaCallback(on_train_batch_end=lambda b, l: print(l)) # here",
        "prints a line",
        "callbacks.LambdaCallback(on_epoch_end=lambda b, l: print(l))",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_what_is_done_at_every_batch_is_seen(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)
