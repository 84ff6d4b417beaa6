"""What several tests of a diagnosis need."""

import pytest


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but where a callback lets time pass."""
    from perfkit.diagnosis import epochs
    from tests.diagnosis.fits import Clock

    made = Clock()
    monkeypatch.setattr(epochs, "time", made)
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
