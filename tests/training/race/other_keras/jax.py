"""Stands for JAX: it remembers for which arrays somebody waited."""


class Array:
    def __init__(self, deleted):
        self.is_deleted = lambda: deleted


WAITED = []
_ARRAYS = [Array(False), Array(True)]


def live_arrays():
    return _ARRAYS


def block_until_ready(arrays):
    assert not any(array.is_deleted() for array in arrays)
    WAITED.append(len(arrays))
