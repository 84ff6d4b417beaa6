"""The Keras that a process trains with, and how its device is waited for.

A diagnosis looks into Keras 3 on TensorFlow. A race also takes Keras 2, JAX and
PyTorch, so nothing that both use imports TensorFlow where the training does not.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from perfkit.machine.environment import is_legacy


def load_keras() -> Any:
    """Return the module ``keras``, or ``tf_keras`` where a variable asks for it."""
    return importlib.import_module("tf_keras" if is_legacy(os.environ) else "keras")


def is_keras_2() -> bool:
    """Whether that is Keras 2, which knows TensorFlow alone."""
    return str(load_keras().__version__).startswith("2.")


def backend_name() -> str:
    """Return what it computes with: ``"tensorflow"``, ``"jax"`` or ``"torch"``."""
    return "tensorflow" if is_keras_2() else str(load_keras().config.backend())


def wait() -> None:
    """Wait until the device has done all that it was given."""
    backend = backend_name()
    library: Any = importlib.import_module(backend)
    if backend == "tensorflow":
        library.test.experimental.sync_devices()
    elif backend == "jax":
        # A step gives its own arrays back to the device, which deletes them.
        arrays = (a for a in library.live_arrays() if not a.is_deleted())
        library.block_until_ready(list(arrays))
    elif backend == "torch" and library.cuda.is_available():
        # On processors PyTorch has done it when a call returns.
        library.cuda.synchronize()


# Batches and data as structures: tuples, lists and dicts of arrays.


def leaves(data: Any) -> Iterator[Any]:
    """Yield the arrays of a structure, those of a dict in the order of its keys."""
    if isinstance(data, Mapping):
        data = [data[name] for name in sorted(data)]
    if not isinstance(data, tuple | list):
        yield data
        return
    for part in data:
        yield from leaves(part)


def map_leaves(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply a function to each array of a structure, whose lists become tuples."""
    if isinstance(data, Mapping):
        return {name: map_leaves(function, data[name]) for name in sorted(data)}
    if isinstance(data, tuple | list):
        return tuple(map_leaves(function, part) for part in data)
    return function(data)
