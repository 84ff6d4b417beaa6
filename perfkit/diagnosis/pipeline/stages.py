"""The stages of a pipeline in words and numbers: what a file can hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from perfkit.diagnosis.pipeline.chain import beneath, functions, kind
from perfkit.diagnosis.pipeline.operations import Doing, doing

_ARGUMENTS = (
    "batch_size",
    "block_length",
    "buffer_size",
    "compression_type",
    "count",
    "cycle_length",
    "deterministic",
    "drop_remainder",
    "num_parallel_calls",
    "num_parallel_reads",
    "reshuffle_each_iteration",
)
_WORK = ("map", "filter", "flat map", "interleave")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage; JSON values only.

    Attributes:
        kind: In plain words, such as ``"map"`` or ``"TFRecord files"``.
        arguments: As they were given; -1 is ``tf.data.AUTOTUNE``.
        parallel: Whether it was told to do several elements at a time.
        random: Whether it draws random numbers; a shuffle does.
        stateful: Whether TensorFlow must not make it parallel by itself.
        python: The ways by which it calls Python.
        reads: Whether it reads files.
        records: Whether it reads records out of files.
        works: Whether elements leave it changed: it computes or reads.
        elements: That leave it; None where nobody knows, -1 where there is no end.
        bytes: Of one of them; None where that differs.
        function: The name of the user's function that it calls; "" where it has none.
        texts: Whether strings are among the parts of an element, all of them scalars.
    """

    kind: str
    arguments: dict[str, Any] = field(default_factory=dict)
    parallel: bool = False
    random: bool = False
    stateful: bool = False
    python: tuple[str, ...] = ()
    reads: bool = False
    records: bool = False
    works: bool = False
    elements: int | None = None
    bytes: int | None = None
    texts: bool = False
    function: str = ""

    def as_facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def stage(dataset: Any, *, source: bool = False) -> Stage:
    """Describe a stage; a source with all that feeds it."""
    named = kind(dataset)
    does = _does(dataset, source=source)
    return Stage(
        kind=named,
        arguments=_arguments(dataset),
        parallel=getattr(dataset, "_num_parallel_calls", None) is not None,
        random=does.random or named == "shuffle",
        stateful=does.stateful,
        python=("from_generator",) if named == "Python generator" else does.python,
        reads=does.reads,
        records=does.records,
        works=named in _WORK or does.reads or bool(does.python),
        elements=_elements(dataset),
        bytes=_bytes(dataset.element_spec),
        texts=_texts(dataset.element_spec),
        function=_function(dataset),
    )


def _does(dataset: Any, *, source: bool) -> Doing:
    if not source:
        return doing(functions(dataset))
    whole = list(beneath(dataset))
    found = doing(function for one in whole for function in functions(one))
    if any(kind(one) == "shuffle" for one in whole):
        return Doing(**(asdict(found) | {"random": True}))
    return found


def _function(dataset: Any) -> str:
    wrapper = getattr(dataset, "_map_func", None)
    name = str(getattr(getattr(wrapper, "_func", None), "__name__", ""))
    return name if name.isidentifier() else ""


def _arguments(dataset: Any) -> dict[str, Any]:
    found = {}
    for name in _ARGUMENTS:
        value = getattr(dataset, f"_{name}", None)
        if value is not None:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _elements(dataset: Any) -> int | None:
    count = int(dataset.cardinality())
    return None if count == -2 else count


def _bytes(spec: Any) -> int | None:
    """Bytes of an element; None where its shape or its strings leave that open."""
    import tensorflow as tf

    whole = 0
    for part in tf.nest.flatten(spec):
        count = part.shape.num_elements() if isinstance(part, tf.TensorSpec) else None
        if count is None or part.dtype == tf.string:
            return None
        whole += count * part.dtype.size
    return whole


def _texts(spec: Any) -> bool:
    import tensorflow as tf

    parts = tf.nest.flatten(spec)
    plain = all(isinstance(p, tf.TensorSpec) and p.shape.rank == 0 for p in parts)
    return plain and any(part.dtype == tf.string for part in parts)
