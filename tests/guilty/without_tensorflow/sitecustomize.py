"""Python as it is where TensorFlow is not installed; found through PYTHONPATH."""

from importlib.machinery import PathFinder

_find = PathFinder.find_spec


def _find_spec(name, path=None, target=None):
    return None if name in ("tensorflow", "keras") else _find(name, path, target)


PathFinder.find_spec = _find_spec
