"""The stages of a pipeline: parallel, ahead, kept, reordered, and without Python."""

import copy
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from perfkit import units
from perfkit.errors import BadParameterError
from perfkit.training.diagnose.change import Change, Untested, of_data
from perfkit.training.diagnose.changes.resident import NAME as CEILING
from perfkit.training.diagnose.facts import Facts, epochs_for
from perfkit.training.diagnose.pipeline import (
    again,
    chain,
    describe,
    is_serial,
    kind,
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
    steps = epochs.trial_steps or epochs.steps
    if steps:
        return Worth(steps, facts.steps)
    seconds = facts.step_s or _WORTH_S
    return Worth(min(_MOST, max(_FEWEST, round(_WORTH_S / seconds))))


_CAUSES = (
    *("serial-map", "slow-read", "python-input", "no-cache", "no-prefetch"),
    *("per-example-map", "late-shuffle", "padding"),
)
# ``tf.data.AUTOTUNE``, for which TensorFlow would have to be loaded.
_AUTOTUNE = -1
# A cache may take this share of the memory that is free.
_ROOM = 0.5
_defect = functools.partial(Change, kind="defect", after=CEILING)


def untold(facts: Facts) -> Iterator[Untested]:
    """Return the causes in stages as untested if TensorFlow does not describe them."""
    reason = facts.pipeline.get("missing")
    if reason:
        for cause in _CAUSES:
            yield Untested(cause, reason)


def serial_map(facts: Facts) -> Iterator[Change | Untested]:
    """Make every map and interleave parallel that does one element at a time."""
    serial = [stage for stage in facts.stages if is_serial(stage)]
    if not serial:
        return
    # TensorFlow makes the other maps parallel by itself.
    remaining = [s for s in serial if s["stateful"] or s["kind"] == "interleave"]
    if facts.pipeline["rewrites"] and not remaining:
        yield Untested("serial-map", "TensorFlow makes these maps parallel by itself")
        return
    kinds = [stage["kind"] for stage in serial]
    distinct = sorted(set(kinds))
    counts = " and ".join(f"{kinds.count(kind)} {kind}" for kind in distinct)
    calls = "(..., num_parallel_calls=tf.data.AUTOTUNE)"
    yield _defect(
        name="parallel maps",
        cause="serial-map",
        changes=f"{counts} stage work on several elements at a time.",
        fix=" and ".join(f".{kind}{calls}" for kind in distinct),
        apply=in_parallel,
    )


def no_prefetch(facts: Facts) -> Iterator[Change | Untested]:
    """Batches made ahead while the model works."""
    if not facts.stages:
        return
    if facts.pipeline["prefetched"]:
        yield Untested("no-prefetch", "the pipeline ends in a prefetch already")
    elif facts.pipeline.get("plan", [])[-1:] == ["Prefetch"]:
        yield Untested("no-prefetch", "TensorFlow puts a prefetch at its end by itself")
    else:
        yield _defect(
            name="prefetch",
            cause="no-prefetch",
            changes="The next batches are made while the model works on this one.",
            fix="dataset.prefetch(tf.data.AUTOTUNE) as the last stage",
            apply=of_data(lambda dataset: dataset.prefetch(_AUTOTUNE)),
        )


def no_cache(facts: Facts) -> Iterator[Change | Untested]:
    """Cache what is the same in each epoch."""
    pipeline, stages = facts.pipeline, facts.stages
    if not stages:
        return
    place, need, room = pipeline["cache"], pipeline["bytes"], pipeline["memory"]
    if pipeline["cached"]:
        yield Untested("no-cache", "the pipeline has a cache already")
        return
    if place is None or need is None:
        yield Untested("no-cache", pipeline["why"])
        return
    size = units.size(need)
    if need > _ROOM * room:
        free = f"and {units.size(room)} of memory are free"
        yield Untested("no-cache", f"its elements would take about {size}, {free}")
        return
    behind = stages[place["after"]]["kind"]
    moved = " and ".join(stages[index]["kind"] for index in place["moved"])
    order = f", with the {moved} behind it" if moved else ""
    fix = f".cache() behind the {behind}{order}"
    if inside := place.get("inside"):
        # The maps that are typed come behind it, and may augment.
        behind = f"{behind} inside {inside}"
        kinds = [stage["kind"] for stage in stages]
        shuffle = ".shuffle(n)" if "shuffle" in kinds else ""
        fix = f"{inside}(..., batch_size=None), then .cache(){shuffle}.batch(b) right "
        fix += "behind it; what it makes to validate on needs a .batch(b), too"
    yield _defect(
        name="cache",
        cause="no-cache",
        changes=f"What leaves the {behind} is kept in memory{order}; all of it takes "
        f"about {size}.",
        fix=fix,
        apply=functools.partial(cached, worth=worth_of(facts)),
    )


def host_to_device(facts: Facts) -> Iterator[Change | Untested]:
    """Batches copied to the GPU ahead."""
    if not facts.stages:
        return
    if not facts.pipeline.get("gpus"):
        yield Untested("host-to-device", "there is no GPU that batches are copied to")
        return
    yield _defect(
        name="copied ahead",
        cause="host-to-device",
        changes="The next batches are copied to the GPU while it works on this one.",
        fix='dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))',
        apply=of_data(copied_ahead),
    )


def in_parallel(training: Training) -> None:
    """Let all maps and interleaves work on as many elements as AUTOTUNE likes."""

    def change(place: int, dataset: Any, before: Any) -> Any:
        if not is_serial(stage(dataset)):
            return None
        return again(dataset, before, num_parallel_calls=_AUTOTUNE)

    training.data = rebuilt(training.data, change)


def cached(training: Training, *, worth: Worth) -> None:
    """Keep the elements that are the same in each epoch, as many as ``worth`` says."""
    point = cache_point(describe(chain(training.data)))
    if isinstance(point, dict):
        after, moved = point["after"], point["moved"]
        training.data = keep_after(training.data, after, worth, moved)


def copied_ahead(dataset: Any) -> Any:
    """Let batches be copied to the first GPU ahead; has to come last."""
    import tensorflow as tf

    return dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))


_LATE = "late-shuffle"
# Stages that give an element for each that they are given.
_ONE_TO_ONE = ("map", "prefetch", "options")
# A trial's epochs are short: of a longer buffer that holds less than all they would
# see it filled, and never emptied without new work.
_SMALL_SHARE = 0.1


def per_example(facts: Facts) -> Iterator[Change]:
    """Batch before maps that do the same to a batch as to each example."""
    names = facts.pipeline.get("for batches") or []
    if not names:
        return
    listed = " and ".join(f"`{n}`" if n else "A function" for n in reversed(names))
    calls = "".join(f".map({name or '...'})" for name in reversed(names))
    yield _defect(
        name="batch before map",
        cause="per-example-map",
        changes=f"{listed} is called for each batch instead of each example; for the "
        "first examples the result is the same.",
        fix=f".batch(...){calls} instead of {calls}.batch(...): the function then "
        "works on a whole batch",
        apply=of_data(functools.partial(batch_first, count=len(names))),
    )


def late_shuffle(facts: Facts) -> Iterator[Change | Untested]:
    """A shuffle in front of the maps whose results it holds."""
    stages = facts.stages
    place = _late([stage["kind"] for stage in stages])
    if place is None:
        return
    before = stages[place - 1]
    size, count = stages[place]["arguments"]["buffer_size"], before["elements"]
    if count is None or (_SMALL_SHARE * count < size < count):
        reason = (
            "a short epoch does not show how long its buffer takes to fill and empty"
        )
        yield Untested(_LATE, reason)
        return
    if count < 0:
        yield Untested(_LATE, "data without an end fill the buffer once")
        return
    yield _defect(
        name="shuffle before map",
        cause=_LATE,
        changes=f"The shuffle of {min(size, count)} elements is filled with what the "
        "map is given, so that each epoch begins before all of that is mapped.",
        fix=f".shuffle({size}) before .map(...), not behind it: the buffer fills at "
        "once, and holds less",
        apply=shuffle_first,
        own_pauses=True,
    )


def _late(kinds: Sequence[str]) -> int | None:
    """The place of the first shuffle that follows a map; None where none does."""
    for place, name in enumerate(kinds):
        if name == "shuffle" and "map" in kinds[_first(kinds, place) : place]:
            return place
    return None


def _first(kinds: Sequence[str], place: int) -> int:
    """The first place of the stages before it that give element for element."""
    first = place
    while first > 1 and kinds[first - 1] in _ONE_TO_ONE:
        first -= 1
    return first


def shuffle_first(training: Training) -> None:
    """Put the first shuffle that follows maps in front of them."""
    objects = chain(training.data)
    kinds = [kind(stage) for stage in objects]
    place = _late(kinds)
    if place is not None:
        objects.insert(_first(kinds, place), objects.pop(place))
        training.data = stacked(objects)


_FIXES = {
    True: "Read more at a time (leave buffer_size to TensorFlow, read several files "
    "with num_parallel_reads=tf.data.AUTOTUNE), or put .cache() behind the reader "
    "where the records fit in memory",
    False: "Put many examples into each file (TFRecord), or copy the files to a disk "
    "that is quicker; a second epoch reads what fits in memory from there",
}


def slow_read(facts: Facts) -> Iterator[Change | Untested]:
    """Records kept behind their reader, or files copied into memory."""
    stages = facts.stages
    if not facts.pipeline.get("reads"):
        return
    place = _reader(stages)
    if place is None:
        reason = "what reads the files also works on them, in one stage"
        yield Untested("slow-read", reason)
        return
    records = stages[place]["records"]
    subject = "The records" if records else "The files"
    yield _defect(
        name="read from memory",
        cause="slow-read",
        changes=f"{subject} come out of memory; all that is done to them stays.",
        fix=_FIXES[records],
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


_PYTHON = "python-input"
_INSTEAD = {
    "PyDataset": "{less}, or a tf.data.Dataset of TensorFlow's own operations",
    "from_generator": "tf.data.Dataset.from_tensor_slices or a reader of files, and "
    ".map(..., num_parallel_calls=tf.data.AUTOTUNE), instead of from_generator",
    "generator": "A tf.data.Dataset of TensorFlow's own operations instead of the "
    "generator, or a PyDataset with workers={cores}",
    **{
        way: f"TensorFlow's own operations instead of {way}{{where}}, or .cache() "
        "behind it where its result is the same in each epoch"
        for way in ("numpy_function", "py_function")
    },
}


def python_input(facts: Facts) -> Iterator[Change | Untested]:
    """The results of Python made beforehand; a PyDataset also with more workers."""
    ways = facts.pipeline.get("python", [])
    if not ways or facts.counts:
        return
    if facts.reshaped:
        yield Untested(
            _PYTHON, "the few results that are kept would end retracing, too"
        )
        return
    if any("debug_mode" in line for line in facts.settings.get("debugging", ())):
        yield Untested(_PYTHON, "debug mode runs all maps in Python, and is measured")
        return
    maps = [
        f"the {stage['kind']} of `{stage['function']}`"
        for stage in facts.stages
        if stage["python"] and stage["function"]
    ]
    where = f" in {' and '.join(maps)}" if maps else ""
    workers = f"super().__init__(workers={cores()}) in the PyDataset"
    less = f"{workers}, more work per call of NumPy"
    if facts.pipeline.get("keras"):
        # Nobody edits the constructor of a class of Keras's.
        workers = less = f"generator.workers = {cores()} above fit"
    filled = {"cores": cores(), "where": where, "less": less}
    fixes = [_INSTEAD[way].format(**filled) for way in ways]
    yield _defect(
        name="without Python",
        cause=_PYTHON,
        changes=f"What Python makes ({', '.join(ways)}{where}) was made beforehand and "
        "is given again from memory; the gain is the share spent in Python.",
        fix=" and ".join(fixes),
        apply=functools.partial(made_beforehand, worth=worth_of(facts)),
    )
    if facts.data == "PyDataset" and facts.pipeline["workers"] < cores() > 1:
        yield _defect(
            name=f"{cores()} workers",
            cause=_PYTHON,
            changes=f"{cores()} threads of Python make batches instead of "
            f"{facts.pipeline['workers']}.",
            fix=workers,
            apply=functools.partial(more_workers, workers=cores()),
        )


def made_beforehand(training: Training, *, worth: Worth) -> None:
    """Run the Python of the input beforehand and repeat its results."""
    if training.kind == "tf.data":
        training.data = _without_python(training.data, worth)
    elif training.kind == "PyDataset":
        training.data = _keep_batches(training.data, worth.steps)
    elif training.kind == "generator":
        training.data = _repeating(training.data, worth.steps)


def more_workers(training: Training, *, workers: int) -> None:
    """Let a PyDataset make so many batches at a time."""
    # A copy, because the unchanged training goes on with the original.
    training.data = copy.copy(training.data)
    training.data.workers = workers


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
        raise BadParameterError("The generator gives no batch that could be kept.")

    def again_and_again() -> Iterator[Any]:
        # One that ended before has an end that has to come again. Keras takes no
        # other iterator than a generator.
        yield from batches if len(batches) < steps else itertools.cycle(batches)

    return again_and_again
