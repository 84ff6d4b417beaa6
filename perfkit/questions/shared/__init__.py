"""What several questions train on, time with, or say; TensorFlow and Keras for them.

Both are loaded where something of them is first used. What a cell hands to
``perfkit.race`` and ``perfkit.fresh`` works in other processes. So its code can be the
plain code of a training, and the notebook's own process, which measures nothing,
neither waits for TensorFlow nor takes a GPU. Nor does a process that lists the
questions, whose modules hold what their trials compute.
"""

import importlib
import sys
from typing import Any


class _Later:
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Copying looks for these before there is a name.
        if attribute.startswith("__") or attribute == "_name":
            raise AttributeError(attribute)
        # Looked up first: importing takes longer, and a timed loop may come by here.
        module = sys.modules.get(self._name) or importlib.import_module(self._name)
        return getattr(module, attribute)


tf: Any = _Later("tensorflow")
keras: Any = _Later("keras")
layers: Any = _Later("keras.layers")
