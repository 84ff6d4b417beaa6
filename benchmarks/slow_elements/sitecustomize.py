"""A machine on which every element of a pipeline comes late: put on ``PYTHONPATH``.

Python imports a module of this name at its start. It waits for TensorFlow's pipelines
and lets every one of them sleep before each element that goes into a batch, as a slow
network or a slow tokenizer would. Whoever measures on such a machine knows none of it.
"""

import importlib.util
import os
import sys

MODULE = "tensorflow.python.data.ops.dataset_ops"
LATE_US = int(os.environ.get("SLOW_ELEMENTS_US", "200"))


class Late:
    """Finds the module as usual, and changes it once it is there."""

    def find_spec(self, name, path=None, target=None):
        """Give the usual spec of the one module, with a loader that changes it."""
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            slow_down(module.DatasetV2)

        spec.loader.exec_module = exec_module
        return spec


def slow_down(dataset):
    """Let every element sleep before it goes into a batch."""
    usual = dataset.batch

    def batch(self, *arguments, **more):
        from tensorflow.python.data.experimental.ops import testing

        return usual(self.apply(testing.sleep(LATE_US)), *arguments, **more)

    dataset.batch = batch


sys.meta_path.insert(0, Late())
