"""Python on the hosts of a fleet in tests: no TensorFlow, and one more experiment."""

import os
from importlib.machinery import PathFinder

import perfkit.experiments

_find = PathFinder.find_spec


def _find_spec(name, path=None, target=None):
    return None if name in ("tensorflow", "keras") else _find(name, path, target)


PathFinder.find_spec = _find_spec
perfkit.experiments.__path__.append(os.path.dirname(__file__))
