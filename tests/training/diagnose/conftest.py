"""What several tests of a diagnosis need."""

import pytest

from tests.engine.scripted import Seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but where a callback lets time pass."""
    made = Seconds()
    monkeypatch.setattr("perfkit.training.diagnose.epochs.time", made)
    return made


@pytest.fixture
def counted():
    """A map that counts how often it is called, and how often it was."""
    import tensorflow as tf

    calls = []

    def call(number):
        calls.append(int(number))
        return number

    return lambda x: tf.numpy_function(call, [x], tf.int64), calls
