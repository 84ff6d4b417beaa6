"""What the function of a stage does: does it draw, call Python, read files?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PYTHON = {
    "EagerPyFunc": "py_function",
    "PyFunc": "numpy_function",
    "PyFuncStateless": "numpy_function",
}
_READS = ("ReadFile", "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")
_RECORDS = _READS[1:]
_WORKS = ("MapDataset", "ParallelMapDataset")
# Each draw differs from the last, whether or not TensorFlow counts them as stateful:
# the seed of a stateless one may be another each time.
_DRAWS = ("Random", "Rng", "Multinomial", "StatefulUniform", "StatefulStandardNormal")
_BRANCHES = ("If", "While", "Case", "Switch")
_DRAWS_TOO = ("TruncatedNormal", "SampleDistortedBoundingBox")


@dataclass(frozen=True)
class Doing:
    """What one or several functions do.

    Attributes:
        random: Whether random numbers are drawn.
        stateful: Whether TensorFlow must not make it parallel by itself.
        python: The ways by which Python is called, such as ``("numpy_function",)``.
        reads: Whether files are read.
        records: Whether that is done by a reader of records, and nothing else.
    """

    random: bool = False
    stateful: bool = False
    python: tuple[str, ...] = ()
    reads: bool = False
    records: bool = False


def doing(functions: Iterable[Any]) -> Doing:
    """Look at traced functions, and at those that they call."""
    found = {name for function in functions for name in _operations(function)}
    return Doing(
        random=any(_draws(name) for name in found),
        stateful=any(_is_stateful(name) for name in found),
        python=tuple(sorted({_PYTHON[name] for name in found & _PYTHON.keys()})),
        reads=any(name.startswith(_READS) for name in found),
        records=any(name.startswith(_RECORDS) for name in found)
        and not any(name.startswith(_WORKS) for name in found),
    )


def branches(functions: Iterable[Any]) -> bool:
    """Whether what they do depends on the values that they are given."""
    found = {name for function in functions for name in _operations(function)}
    return any(name.endswith(_BRANCHES) for name in found)


def _operations(function: Any) -> Iterator[str]:
    """The names of all operations, those in branches and inner functions too."""
    definition = function.graph.as_graph_def()
    yield from (node.op for node in definition.node)
    for inner in definition.library.function:
        yield from (node.op for node in inner.node_def)


def _draws(name: str) -> bool:
    return any(word in name for word in _DRAWS) or name.endswith(_DRAWS_TOO)


def _is_stateful(name: str) -> bool:
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(name)
    return definition is not None and definition.is_stateful and name != "Assert"
