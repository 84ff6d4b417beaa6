"""The stages of a pipeline as TensorFlow's own objects, from the source to the last.

TensorFlow keeps what each stage was made of: the stage before it, its function and its
arguments. None of that is public. What is not known here ends the chain: that stage
and all before it count as the source, which nobody takes apart.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perfkit.training.account.places import Place, note_stages
from perfkit.training.diagnose.maker import LineNames

# Of the stages with one stage before them that can be built anew: TensorFlow's name for
# the class, the method that makes one, which names the kind, and its arguments.
_BUILT = {
    "_AssertCardinalityDataset": "assert_cardinality",
    "_BatchDataset": "batch batch_size drop_remainder",
    "_FilterDataset": "filter predicate",
    "_FlatMapDataset": "flat_map map_func",
    "_InterleaveDataset": "interleave map_func cycle_length block_length",
    "_MapDataset": "map map_func",
    "_OptionsDataset": "options",
    "_PaddedBatchDataset": "padded_batch batch_size padded_shapes padding_values "
    "drop_remainder",
    "_ParallelBatchDataset": "batch batch_size drop_remainder num_parallel_calls "
    "deterministic",
    "_ParallelMapDataset": "map map_func num_parallel_calls deterministic "
    "use_unbounded_threadpool",
    "_PrefetchDataset": "prefetch buffer_size",
    "_RepeatDataset": "repeat count",
    "_ShardDataset": "shard num_shards index",
    "_ShuffleDataset": "shuffle buffer_size reshuffle_each_iteration",
    "_SkipDataset": "skip count",
    "_TakeDataset": "take count",
    "CacheDataset": "cache filename",
}
_SOURCES = {
    "FixedLengthRecordDatasetV2": "records of fixed length",
    "TFRecordDatasetV2": "TFRecord files",
    "TextLineDatasetV2": "lines of text files",
    "_ConcatenateDataset": "concatenate",
    "_DirectedInterleaveDataset": "sample from datasets",
    "_ParallelInterleaveDataset": "interleave",
    "_RangeDataset": "range",
    "_TensorDataset": "one value",
    "_TensorSliceDataset": "slices in memory",
    "_ZipDataset": "zip",
}


# What holds the line that made a stage, as ``LineNames.locate`` has it.
_LINE = "_perfkit_line"


def remember_lines(maker: Callable[[], Any]) -> None:
    """Let each stage that is made in this process from now on keep its line."""
    names = LineNames(maker)

    def keep(dataset: Any, place: Place) -> None:
        # All cells of a kernel are called alike, and only one of them is edited.
        if "ipykernel" not in place[0] or place[0] == names.of_cell:
            # TensorFlow would track an attribute that is set.
            vars(dataset)[_LINE] = names.locate(*place)

    note_stages(keep)


def chain(dataset: Any) -> list[Any]:
    """The stages that can be built anew, behind the source that they start from."""
    stages = [dataset]
    # A map that takes a private path through TensorFlow is left as it is.
    while type(stages[-1]).__name__ in _BUILT and hasattr(stages[-1], "_input_dataset"):
        if _generates(stages[-1]):
            break
        stages.append(stages[-1]._input_dataset)
    return stages[::-1]


def kind(stage: Any) -> str:
    """Name the kind of a stage; TensorFlow's name where there is no plainer one."""
    if _generates(stage):
        return "Python generator"
    name = type(stage).__name__
    if name in _BUILT:
        return _BUILT[name].split()[0].replace("_", " ")
    return _SOURCES.get(name) or name.strip("_")


def again(stage: Any, before: Any, **changes: Any) -> Any:
    """Build a stage anew behind another one, with changed arguments if there are any.

    A stage that does not change is returned as it is, so that its function is not
    traced again, and so is the source, for which ``before`` is None.
    """
    if before is None or (before is stage._input_dataset and not changes):
        return stage
    name = type(stage).__name__
    if name == "_OptionsDataset":
        return before.with_options(stage.options())
    if name == "_AssertCardinalityDataset":
        from tensorflow.data.experimental import assert_cardinality

        return before.apply(assert_cardinality(int(stage._expected_cardinality)))
    method, *arguments = _BUILT[name].split()
    values = {key: _argument(stage, key) for key in arguments} | changes
    if name == "_MapDataset" and stage._force_synchronous and not changes:
        values["synchronous"] = True
    # Two zeros mean a random seed; otherwise the first is the global seed.
    if name == "_ShuffleDataset" and (int(stage._seed) or int(stage._seed2)):
        values["seed"] = int(stage._seed2)
    return getattr(before, method)(**values)


def stacked(stages: Iterable[Any], before: Any = None) -> Any:
    """Build stages one behind the other, behind ``before`` if there is one."""
    for stage in stages:
        before = again(stage, before)
    return before


def rebuilt(dataset: Any, change: Callable[[int, Any, Any], Any]) -> Any:
    """Build a pipeline anew, each stage being what ``change`` makes of it.

    That takes a stage's place in the chain, the stage as it was and what is before it
    now; it gives what stands there, or None for the same. It is not asked for the
    source.
    """
    built, *stages = chain(dataset)
    for place, stage in enumerate(stages, 1):
        changed = change(place, stage, built)
        built = again(stage, built) if changed is None else changed
    return built


def _argument(stage: Any, name: str) -> Any:
    value = getattr(stage, f"_{name}")
    if name == "deterministic":
        return {"true": True, "false": False}.get(value)
    if name in ("padded_shapes", "padding_values"):
        return value
    if hasattr(value, "_func"):
        return value._func
    value = value.numpy() if hasattr(value, "numpy") else value
    value = value.tolist() if hasattr(value, "tolist") else value
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def functions(stage: Any) -> list[Any]:
    """The functions that a stage calls, as traced by TensorFlow."""
    return [wrapper.function for wrapper in stage._functions()]


def beneath(stage: Any) -> Iterator[Any]:
    """A stage and all that feed it, whatever their kind."""
    yield stage
    inner = getattr(stage, "_impl", None)
    for before in (*stage._inputs(), *([inner] if inner is not None else ())):
        yield from beneath(before)


def _generates(stage: Any) -> bool:
    """Whether it is what ``from_generator`` makes."""
    return type(stage).__name__ == "_FlatMapDataset" and any(
        operation.type == "GeneratorDataset"
        for function in functions(stage)
        for operation in function.graph.get_operations()
    )


_PYTHON = {
    "EagerPyFunc": "py_function",
    "PyFunc": "numpy_function",
    "PyFuncStateless": "numpy_function",
}
_READS = ("ReadFile", "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")
_RECORDS = _READS[1:]
_WORKS = ("MapDataset", "ParallelMapDataset")
# Each draw differs from the last, whether or not TensorFlow counts them as stateful:
# the seed of a stateless one may be another each time. What draws says so by what it
# takes, a seed or the algorithm of a generator; the others by their names.
_GENERATORS = ("alg", "algorithm")
_DRAWS = ("Random", "Rng", "StatefulStandardNormal")
_BRANCHES = ("If", "While", "Case", "Switch")


def _operations(function: Any) -> Iterator[str]:
    """The names of all operations, those in branches and inner functions too."""
    definition = function.graph.as_graph_def()
    yield from (node.op for node in definition.node)
    for inner in definition.library.function:
        yield from (node.op for node in inner.node_def)


def _draws(name: str) -> bool:
    from tensorflow.python.framework import op_def_registry

    if any(word in name for word in _DRAWS):
        return True
    definition = op_def_registry.get(name)
    if definition is None:
        return False
    inputs = {argument.name for argument in definition.input_arg}
    seeded = inputs | {attr.name for attr in definition.attr}
    return any("seed" in name for name in seeded) or not inputs.isdisjoint(_GENERATORS)


def _is_stateful(name: str) -> bool:
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(name)
    return definition is not None and definition.is_stateful and name != "Assert"


_WORK = ("map", "filter", "flat map", "interleave")


# What TensorFlow says of a number of elements that nobody knows.
UNKNOWN = -2
# Stages that can be told to work on several elements at a time.
_AT_ONCE = ("map", "interleave")


def is_serial(stage: dict[str, Any]) -> bool:
    """Whether a stage that may work on several elements works on one at a time."""
    return stage["kind"] in _AT_ONCE and not stage["parallel"]


def stage(
    dataset: Any, *, source: bool = False, shuffled: bool = False
) -> dict[str, Any]:
    """Describe a stage; a source with all that feeds it, ``shuffled`` later or not.

    Returns:
        A JSON object:

        * ``"kind"``: in plain words, such as ``"map"`` or ``"TFRecord files"``;
        * ``"parallel"``: whether it was told to do several elements at a time;
        * ``"random"``: whether it draws random numbers; a shuffle does, but for that of
          the files that an interleave reads;
        * ``"stateful"``: whether TensorFlow must not make it parallel by itself;
        * ``"python"``: the ways by which it calls Python;
        * ``"branches"``: whether it branches on the values of its inputs;
        * ``"reads"``, ``"records"``: whether it reads files, or records out of them;
        * ``"works"``: whether elements leave it changed: it computes or reads;
        * ``"texts"``: whether strings are among the parts of an element, all of them
          scalars;
        * ``"function"``: the name of the user's function that it calls; "" where it has
          none;
        * ``"line"``: file, cell and line that made it; empty where nobody noted that.
    """
    kind_name, parts = kind(dataset), list(beneath(dataset)) if source else [dataset]
    traced = (function for part in parts for function in functions(part))
    operations = {name for function in traced for name in _operations(function)}
    does: dict[str, Any] = {
        "random": any(map(_draws, operations)),
        "stateful": any(map(_is_stateful, operations)),
        "python": tuple(sorted({_PYTHON[op] for op in operations & _PYTHON.keys()})),
        "branches": any(name.endswith(_BRANCHES) for name in operations),
        "reads": any(name.startswith(_READS) for name in operations),
        "records": any(name.startswith(_RECORDS) for name in operations)
        and not any(name.startswith(_WORKS) for name in operations),
    }
    # Files may stay in one order where what they hold is shuffled.
    ordered = kind_name == "interleave" and shuffled
    if not ordered and any(kind(part) == "shuffle" for part in parts):
        does["random"] = True
    if kind_name == "Python generator":
        does["python"] = ("from_generator",)
    works = does["reads"] or bool(does["python"])
    return does | {
        "kind": kind_name,
        "parallel": getattr(dataset, "_num_parallel_calls", None) is not None,
        "works": works or any(kind(part) in _WORK for part in parts),
        "texts": _texts(dataset.element_spec),
        "function": _function(dataset),
        "line": [*vars(dataset).get(_LINE, ())],
    }


def describe(objects: list[Any]) -> list[dict[str, Any]]:
    """Describe all stages of a pipeline, the source first."""
    later = any(kind(dataset) == "shuffle" for dataset in objects[1:])
    return [
        stage(dataset, source=not place, shuffled=later)
        for place, dataset in enumerate(objects)
    ]


def _function(dataset: Any) -> str:
    wrapper = getattr(dataset, "_map_func", None)
    name = str(getattr(getattr(wrapper, "_func", None), "__name__", ""))
    return name if name.isidentifier() else ""


def _texts(spec: Any) -> bool:
    import tensorflow as tf

    parts = tf.nest.flatten(spec)
    plain = all(isinstance(p, tf.TensorSpec) and p.shape.rank == 0 for p in parts)
    return plain and any(part.dtype == tf.string for part in parts)
