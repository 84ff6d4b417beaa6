"""The stages of a pipeline: reordered, parallel, kept, and without Python."""

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose.change import (
    Candidates,
    Change,
    KnownCause,
    Untested,
    of_data,
)
from perfkit.training.diagnose.code import (
    Code,
    Splice,
    Unsure,
    line_of_stage,
    require,
    set_argument,
)
from perfkit.training.diagnose.facts import Facts, epochs_for
from perfkit.training.diagnose.pipeline import (
    again,
    chain,
    describe,
    is_serial,
    rebuilt,
    stacked,
    stage,
)
from perfkit.training.diagnose.pipeline.facts import batch_first
from perfkit.training.diagnose.pipeline.memory import (
    Worth,
    cache_point,
    from_memory,
    keep_after,
    keep_first,
    per_step,
)
from perfkit.training.diagnose.settings import cores
from perfkit.training.diagnose.training import Training

# Where no epoch has an end that anybody knows, so many seconds' worth.
_WORTH_S = 0.5
_FEWEST, _MOST = 4, 256


def worth_of(facts: Facts) -> Worth:
    """As many steps as an epoch of a trial has."""
    epochs = epochs_for(facts)
    if steps := epochs.trial_steps or epochs.steps:
        return Worth(steps, facts.steps)
    seconds = facts.step_s or _WORTH_S
    return Worth(min(_MOST, max(_FEWEST, round(_WORTH_S / seconds))))


# ``tf.data.AUTOTUNE``, for which TensorFlow would have to be loaded.
AUTOTUNE = -1
# A cache may take this share of the memory that is free.
_ROOM = 0.5
_change = functools.partial(Change, after=WITHOUT_INPUT)


def serial_map(facts: Facts) -> Candidates:
    """Make every map and interleave parallel that does one element at a time."""
    serial = [stage for stage in facts.stages if is_serial(stage)]
    if not serial:
        return
    # TensorFlow makes the other maps parallel by itself.
    remaining = [s for s in serial if s["stateful"] or s["kind"] == "interleave"]
    if facts.pipeline["rewrites"] and not remaining:
        yield Untested("TensorFlow already runs these maps in parallel")
        return
    kinds = sorted(Counter(stage["kind"] for stage in serial).items())
    counts = " and ".join(f"{count} {kind}" for kind, count in kinds)
    calls = "(..., num_parallel_calls=tf.data.AUTOTUNE)"
    yield _change(
        name="parallel maps",
        changes=f"{counts} stage work on several elements at once.",
        fix=" and ".join(f".{kind}{calls}" for kind, _ in kinds),
        apply=in_parallel,
    )


def no_cache(facts: Facts) -> Candidates:
    """Cache what is the same in each epoch."""
    pipeline, stages = facts.pipeline, facts.stages
    if not stages:
        return
    place, need, room = pipeline["cache"], pipeline["bytes"], pipeline["memory"]
    reason = pipeline["why"]
    if pipeline["cached"]:
        reason = "the pipeline already has a cache"
    elif not reason and need > _ROOM * room:
        free = f"and only {units.size(room)} of memory is free"
        reason = f"its elements would take about {units.size(need)}, {free}"
    if reason:
        yield Untested(reason)
        return
    behind = stages[place["after"]]["kind"]
    moved = " and ".join(stages[index]["kind"] for index in place["moved"])
    order = f", with the {moved} after it" if moved else ""
    yield _change(
        name="cache",
        changes=f"A cache keeps in memory what leaves the {behind}{order}.",
        fix=f".cache() after the {behind}{order}",
        mind=f"The cache takes about {units.size(need)} of memory.",
        apply=functools.partial(cached, worth=worth_of(facts)),
    )


def in_parallel(training: Training) -> None:
    """Let all maps and interleaves work on as many elements as AUTOTUNE likes."""

    def change(place: int, dataset: Any, before: Any) -> Any:
        if not is_serial(stage(dataset)):
            return None
        return again(dataset, before, num_parallel_calls=AUTOTUNE)

    training.data = rebuilt(training.data, change)


def cached(training: Training, *, worth: Worth) -> None:
    """Keep the elements that are the same in each epoch, as many as ``worth`` says."""
    point = cache_point(describe(chain(training.data)))
    if isinstance(point, dict):
        after, moved = point["after"], point["moved"]
        training.data = keep_after(training.data, after, worth, moved)


def per_example(facts: Facts) -> Candidates:
    """Batch before maps that do the same to a batch as to each example."""
    names = facts.pipeline.get("for batches") or []
    if not names:
        return
    listed = " and ".join(f"`{n}`" if n else "A function" for n in reversed(names))
    calls = "".join(f".map({name or '...'})" for name in reversed(names))
    yield _change(
        name="batch before map",
        changes=f"{listed} is called for each batch instead of each example; the first "
        "examples gave the same result.",
        fix=f".batch(...){calls} instead of {calls}.batch(...): the function then "
        "works on a whole batch",
        apply=of_data(functools.partial(batch_first, count=len(names))),
    )


_FIXES = {
    True: "Read several files at once (num_parallel_reads=tf.data.AUTOTUNE, no "
    "buffer_size), or put .cache() after the reader if the records fit in memory",
    False: "Put many examples into each file (TFRecord), or copy the files to a faster "
    "disk; after the first epoch, memory serves the files that fit",
}


def slow_read(facts: Facts) -> Candidates:
    """Records kept behind their reader, or files copied into memory."""
    if not facts.pipeline.get("reads"):
        return
    place = _reader(facts.stages)
    if place is None:
        yield Untested("one stage reads the files and works on them")
        return
    records = facts.stages[place]["records"]
    subject = "The records" if records else "The files"
    yield _change(
        name="read from memory",
        changes=f"{subject} come from memory; the work on them stays.",
        fix=_FIXES[records],
        subject="With its files in memory the training",
        apply=functools.partial(read_from_memory, worth=worth_of(facts)),
        # A cache behind the work also saves the reading.
        combines=facts.pipeline["cache"] is None,
    )


def _reader(stages: Sequence[dict[str, Any]]) -> int | None:
    """Return the place of the stage that can read from memory, or None."""
    for place, entry in enumerate(stages):
        if entry["records"]:
            return place
        if entry["reads"]:
            has_names = place > 0 and stages[place - 1]["texts"]
            return place if has_names and entry["kind"] == "map" else None
    return None


def read_from_memory(training: Training, *, worth: Worth) -> None:
    """Read the same bytes from memory, for as many steps as ``worth`` says."""
    stages = describe(chain(training.data))
    place = _reader(stages)
    if place is not None:
        from_there = keep_after if stages[place]["records"] else from_memory
        training.data = from_there(training.data, place, worth)


_INSTEAD = {
    "PyDataset": "{less}, or a tf.data.Dataset of TensorFlow operations",
    "from_generator": "tf.data.Dataset.from_tensor_slices or a reader of files, and "
    ".map(..., num_parallel_calls=tf.data.AUTOTUNE), instead of from_generator",
    "generator": "A tf.data.Dataset of TensorFlow operations instead of the "
    "generator, or a PyDataset with workers={cores}",
    **{
        way: f"TensorFlow operations instead of {way}{{where}}, or .cache() after it "
        "if its result is the same in every epoch"
        for way in ("numpy_function", "py_function")
    },
}


def python_input(facts: Facts) -> Candidates:
    """The results of Python made beforehand."""
    ways = facts.pipeline.get("python", [])
    if not ways or facts.counts:
        return
    if facts.reshaped:
        yield Untested("a few kept results would also stop the retracing")
        return
    if any("debug_mode" in line for line in facts.settings.get("debugging", ())):
        yield Untested("debug mode runs all maps in Python, and is itself measured")
        return
    maps = [
        f"the {stage['kind']} of `{stage['function']}`"
        for stage in facts.stages
        if stage["python"] and stage["function"]
    ]
    where = f" in {' and '.join(maps)}" if maps else ""
    less = f"super().__init__(workers={cores()}) in the PyDataset, more work per call"
    if facts.pipeline.get("keras"):
        # Nobody edits the constructor of a class of Keras's.
        less = f"generator.workers = {cores()} above fit"
    filled = {"cores": cores(), "where": where, "less": less}
    fixes = [_INSTEAD[way].format(**filled) for way in ways]
    yield _change(
        name="without Python",
        changes=f"What Python makes ({', '.join(ways)}{where}) was made beforehand and "
        "comes from memory, so the gain is the time spent in Python.",
        fix=" and ".join(fixes),
        mind="Its replacement takes time, too.",
        subject="Without Python in its input the training",
        apply=functools.partial(made_beforehand, worth=worth_of(facts)),
    )


def made_beforehand(training: Training, *, worth: Worth) -> None:
    """Run the Python of the input beforehand and repeat its results."""
    if training.kind == "tf.data":
        training.data = _without_python(training.data, worth)
    elif training.kind == "PyDataset":
        training.data = _keep_batches(training.data, worth.steps)
    elif training.kind == "generator":
        training.data = _repeating(training.data, worth.steps)


def _without_python(dataset: Any, worth: Worth) -> Any:
    import tensorflow as tf

    objects = chain(dataset)
    stages = describe(objects)
    calling = [at for at, stage in enumerate(stages) if stage["python"]]
    if not calling:
        return dataset
    first, last = calling[0], calling[-1]
    is_one_to_one = per_step(objects[first : last + 1]) == 1
    if not (is_one_to_one and any(stage["works"] for stage in stages[:first])):
        return keep_after(dataset, last, worth)
    results = keep_first(objects[last], worth.steps * per_step(objects[last + 1 :]))
    # The stages before Python still run, so that only Python's own time goes away.
    pairs = tf.data.Dataset.zip((objects[first - 1], results))
    return stacked(objects[last + 1 :], pairs.map(lambda element, result: result))


def _keep_batches(data: Any, steps: int) -> Any:
    import keras

    length: int | None = data.num_batches
    count = min(steps, length) if length else steps
    batches = [data[at] for at in range(count)]

    class Held(keras.utils.PyDataset):  # type: ignore[misc]
        """Batches that were made beforehand."""

        @property
        def num_batches(self) -> int | None:
            return length

        def __len__(self) -> int:
            return length or 0

        def __getitem__(self, index: int) -> Any:
            return batches[index % count]

    return Held(workers=data.workers, max_queue_size=data.max_queue_size)


def _repeating(making: Any, steps: int) -> Any:
    batches = list(itertools.islice(making(), steps))
    if not batches:
        raise BadParameterError("The generator yields no batch to keep.")

    def again_and_again() -> Iterator[Any]:
        # One that ended before has an end that has to come again. Keras takes no
        # other iterator than a generator.
        yield from batches if len(batches) < steps else itertools.cycle(batches)

    return again_and_again


def _line_of_cache(code: Code) -> int:
    stages = code.pipeline.get("stages", [])
    return code.line_of(stages[require(code.pipeline.get("cache"))["after"]])


_PARALLEL = {
    "map": ("map_func", "num_parallel_calls"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls"),
}


def _type_parallel(code: Code) -> Iterator[Splice]:
    """Let every stage that works on one element at a time work on several."""
    serial = [pair for pair in code.stages() if is_serial(pair[0])]
    for entry, stage_call in serial:
        call = require(stage_call)
        value = f"{code.tensorflow}.data.AUTOTUNE"
        by_place = _PARALLEL[entry["kind"]]
        yield from set_argument(code, call, "num_parallel_calls", value, by_place)


def _type_cache(code: Code) -> Iterator[Splice]:
    """Keep what a stage makes, where no other stage has to move for it."""
    point = require(code.pipeline.get("cache"))
    if point["moved"]:
        raise Unsure
    calls = [call for _, call in code.stages()]
    yield from code.text.call_on(require(calls[point["after"]]), ".cache()")


_input = functools.partial(
    KnownCause, kind="defect", group=WITHOUT_INPUT, of_stages=True
)
PER_EXAMPLE_MAP = _input(
    id="per-example-map",
    do="Batch before the map",
    means="a map is called for each example instead of each batch",
    offer=per_example,
    line=line_of_stage(lambda stage: stage["kind"] == "batch"),
)
SERIAL_MAP = _input(
    id="serial-map",
    do="Run the maps in parallel",
    means="its map works on one element at a time",
    offer=serial_map,
    edit=_type_parallel,
    line=line_of_stage(is_serial),
)
SLOW_READ = _input(
    id="slow-read",
    do="Read the files faster",
    means="reading its files costs time",
    offer=slow_read,
    line=line_of_stage(lambda stage: stage["records"]),
)
PYTHON_INPUT = _input(
    id="python-input",
    do="Take Python out of the input",
    means="Python makes its input",
    offer=python_input,
    line=line_of_stage(lambda stage: stage["python"]),
)
NO_CACHE = _input(
    id="no-cache",
    do="Cache what every epoch recomputes",
    means="every epoch recomputes what a cache could keep",
    offer=no_cache,
    edit=_type_cache,
    line=_line_of_cache,
)
