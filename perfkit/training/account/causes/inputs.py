"""How batches are made, and what Python does between the steps or in their place."""

import functools
import re
from collections.abc import Callable, Iterator

from perfkit import units
from perfkit.findings.account import COMPUTING, INPUT, PYTHON, THREAD, Line, Stage
from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.account.causes.base import (
    WORTH,
    Evidence,
    View,
    cause,
    distinct,
)

# Batches: work that is thrown away, repeated, or done in Python.

_input_cause = functools.partial(cause, group=WITHOUT_INPUT)
# Stages that run code of the user's.
_WORKS = re.compile(r"Map|Generator|Interleave|PyFunc")
_ALL_THROWN, _LARGE_INPUT = 3.0, 0.15
_SMALL = 200
_ITERATORS = 20
_READERS = ("Generator", "TFRecord", "TextLine", "FixedLengthRecord")
# What changes a picture at random, or each of its pixels.
_AUGMENTS = ("random_", "adjust_", "rotat", "Random")


def _expensive(view: View) -> list[Line]:
    """Lines of the input that the model waits for, the most expensive first."""
    lines = [line for line in view.input_lines if view.share(line) >= 0.02]
    return sorted(lines, key=lambda line: -line.seconds.get(INPUT, 0.0))


def _works(stage: Stage, below: Stage) -> bool:
    """Whether elements are made on the way from one stage to one above it.

    A stage that a skip calls is in no trace itself, but in the paths behind it.
    """
    return bool(_WORKS.search(below.path[len(stage.path) :]))


def _is_large(view: View) -> bool:
    return view.input_share >= _LARGE_INPUT


def _waiting(view: View, *lines: Line, clause: str) -> Evidence:
    """Return as evidence that the model waits for its input, and say more of it."""
    percent = units.percent(view.input_share)
    means = f"The model waits {percent} of the time for its input, {clause}."
    return Evidence(lines=distinct(*lines), share=view.input_share, means=means)


@_input_cause(
    "thrown-away",
    do="Drop elements before the expensive work at {where}",
    fix="First `filter`, `take` and `skip` on file names and labels, then `map` the "
    "rest; or `cache()` before them",
)
def _thrown_away(view: View) -> Iterator[Evidence]:
    for kinds in (("Filter", "TakeWhile"), ("Skip", "FiniteSkip")):
        droppers = [
            stage
            for stage in view.stages(*kinds)
            if stage.given and any(_works(stage, o) for o in view.below(stage))
        ]
        inputs = sum(stage.given for stage in droppers)
        outputs = max(1, sum(stage.out for stage in droppers))
        lines = [line for stage in droppers if (line := view.line_of(stage))]
        costly = _expensive(view)
        if _is_large(view) and inputs >= _ALL_THROWN * outputs and lines and costly:
            # What is skipped is named where it is skipped.
            order = (*lines, *costly) if "Skip" in kinds else (*costly, *lines)
            clause = (
                f"which makes {inputs / outputs:.0f} elements and keeps one of them"
            )
            yield _waiting(view, *order, clause=clause)


@_input_cause(
    "cache-thrown-away",
    do="Put `cache()` after `take`",
    fix="`.take(n).cache()`",
    mind="Every epoch then takes the same elements: shuffle behind the cache.",
    swap="no-cache",
)
def _cache_thrown_away(view: View) -> Iterator[Evidence]:
    for stage in view.account.stages:
        above = stage.path.split("::")[:-1]
        cached = "Cache" in stage.kind or stage.kind == "Memory"
        is_taken = any(part.startswith(("Take", "FiniteTake")) for part in above)
        line = view.line_of(stage)
        if cached and is_taken and line and _is_large(view):
            clause = "because a `take` follows the cache, so no epoch fills it"
            yield _waiting(view, *_expensive(view)[:1], line, clause=clause)
            return


@_input_cause(
    "iterator-anew",
    do="Make the iterator once, before the loop, and not at {where}",
    fix="`batches = iter(dataset.repeat())` before the loop, `next(batches)` in it",
    mind="With `repeat()` the data have no end, so count the steps.",
)
def _iterator_anew(view: View) -> Iterator[Evidence]:
    # A loop over a few batches makes one for each of its passes, too.
    often = max(_ITERATORS, view.account.updates / 2)
    for line, count in view.noted("iterators"):
        if count >= often and _is_large(view):
            clause = f"because each of {count:,} new iterators fills its buffers again"
            yield _waiting(view, line, *_expensive(view)[:3], clause=clause)
            return


@_input_cause(
    "single-elements",
    do="Pass on whole batches, not single elements, at {where}",
    fix="Slice whole windows or batches from the arrays, such as with "
    "`keras.utils.timeseries_dataset_from_array`, or `batch` before the map",
)
def _single_elements(view: View) -> Iterator[Evidence]:
    updates = max(1, view.account.updates)
    for stage in view.stages("FlatMap", "Interleave", "Window", "Unbatch"):
        line = view.line_of(stage)
        # What `from_generator` is made of is not the user's to change, and files of
        # records hold single ones.
        if any(below.kind in _READERS for below in view.below(stage)):
            continue
        is_hot = line and _is_large(view) and view.share(line) >= 0.02
        if line and is_hot and stage.out > _SMALL:
            clause = (
                f"in which {stage.out:,} single elements passed a `{stage.kind}` in "
                f"the traced seconds alone. The whole run made {updates:,} steps"
            )
            yield _waiting(view, line, *_expensive(view)[:3], clause=clause)
            return


@_input_cause(
    "python-batches",
    do="Spend less Python on each batch at {where}",
    fix="Work on whole batches with NumPy, once before training, or in `tf.data`; "
    "`workers=` of a `PyDataset` helps if the work releases Python's lock",
    swap="python-input",
)
def _python_batches(view: View) -> Iterator[Evidence]:
    stages = [o for o in view.stages("Generator", "PyFunc") if view.line_of(o)]
    lines = [o for o in _expensive(view) if THREAD in o.parts[:1] and o.kind == INPUT]
    if lines and view.share(*lines) >= _LARGE_INPUT:
        yield Evidence(
            lines=tuple(lines[:4]),
            means=f"The model waits {view.percent(*lines)} of the time for Python to "
            f"make its batches{' element by element' if stages else ''}.",
        )


@_input_cause(
    "full-size",
    do="Resize the pictures before you augment them at {where}",
    fix="`tf.image.resize` right after decoding, then a cache if it fits in memory, "
    "then the random changes",
    mind="Augmenting after the resize gives slightly different pictures.",
)
def _full_size(view: View) -> Iterator[Evidence]:
    lines = [o for o in _expensive(view) if any(w in o.code for w in _AUGMENTS)]
    resizes = [line for line in view.input_lines if "resize" in line.code]
    later = [o for o in resizes if lines and (o.file, o.line) > (lines[0].file, 0)]
    if not later or view.share(*lines) < _LARGE_INPUT:
        return
    if all(resize.line > line.line for line in lines for resize in later):
        yield Evidence(
            lines=tuple(lines[:4]),
            means=f"The model waits {view.percent(*lines)} of the time while the input "
            f"augments pictures at full size; only then {later[0].where} shrinks them.",
        )


@_input_cause(
    "map-in-turn",
    do="Run the map in parallel",
    fix="`.map(..., num_parallel_calls=tf.data.AUTOTUNE)`",
    swap="serial-map",
)
def _map_in_turn(view: View) -> Iterator[Evidence]:
    for stage in view.stages("Map"):
        line = view.line_of(stage)
        if line and stage.out and _is_large(view):
            clause = f"and the map at {line.where} works on one element at a time"
            yield _waiting(view, *_expensive(view)[:2], line, clause=clause)
            return


@_input_cause(
    "input",
    do="Make the input cheaper, {where} first",
    fix="`cache()` after the stages that repeat in every epoch, if that fits in "
    "memory; less work per example; `num_parallel_calls=tf.data.AUTOTUNE`",
    mind="Random stages, such as augmentation, must stay after the cache.",
    swap="no-cache",
)
def _input(view: View) -> Iterator[Evidence]:
    lines = _expensive(view)
    if lines and _is_large(view):
        yield _waiting(view, *lines[:4], clause=f"most of it at {lines[0].where}")


# Python between the steps, and steps that are Python.

_MOST = 0.35
_KERAS = ("fit", "predict", "evaluate", "train_on_batch")
_READS = ("numpy", "__float__", "__int__", "__bool__", "__array__", "item")
_COPIES = (
    *("concatenate", "append", "vstack", "hstack", "stack", "array", "asarray"),
    *("convert_to_tensor", "constant", "copy", "deepcopy", "convert_to_constant"),
)
_PANDAS = ("iterrows", "itertuples", "__getitem__", "iloc", "apply", "sample", "_ixs")
_FILES = ("load", "open", "imread", "read_csv", "read", "loadtxt", "decompress")


@cause(
    "steps-are-eager",
    do="Put the step that begins at {where} into a `tf.function`",
    fix="`@tf.function` on the function that makes one step",
    mind="Python inside it, such as a print or a counter, then runs once.",
    swap="eager",
)
def _steps_are_eager(view: View) -> Iterator[Evidence]:
    lines = [line for line in view.account.lines if line.is_eager]
    # What Keras does around the steps of a short epoch is eager, too.
    eager_s = sum(line.eager_s for line in view.account.lines)
    if eager_s < view.account.kinds[COMPUTING] / 2:
        lines = [line for line in lines if not line.find_call(*_KERAS)]
    share = view.account.share(
        sum(o.seconds.get(COMPUTING, 0) + o.seconds.get(PYTHON, 0) for o in lines)
    )
    if lines and share >= _MOST:
        yield view.spent(
            *lines[:6],
            on="operations that Python starts one by one, because no graph holds them",
            share=share,
        )


def _calls(
    names: tuple[str, ...], share: float = WORTH
) -> Callable[[View], Iterator[Evidence]]:
    def find(view: View) -> Iterator[Evidence]:
        lines = view.mostly_calling(*names)
        if lines and view.share(*lines) >= share:
            lines.sort(key=lambda line: -line.total_s)
            first = f"`{lines[0].calls[0].name}` at {lines[0].where}"
            yield view.spent(*lines[:4], on=f"{first}, between the steps")

    return find


_TENSORS_READ = cause(
    "tensors-read",
    do="Read tensors less often than at {where}",
    fix="Sum in tensors or `keras.metrics`, and call `.numpy()` once an epoch",
)(_calls(_READS))
_ARRAYS_COPIED = cause(
    "arrays-copied",
    do="Stop copying or converting arrays in every step at {where}",
    fix="Allocate one array and fill it; convert to tensors once, before the loop",
)(_calls(_COPIES))
_PANDAS_ROWS = cause(
    "pandas-rows",
    do="Take rows from arrays, not from a DataFrame, at {where}",
    fix="`table.to_numpy()` once, before the loop",
)(_calls(_PANDAS, 2 * WORTH))
_FILES_READ_AGAIN = cause(
    "files-read-again",
    do="Read the file at {where} once",
    fix="Read before the loop, or read parts with `np.load(..., mmap_mode='r')`",
)(_calls(_FILES, 2 * WORTH))


@cause(
    "python-between-steps",
    do="Do the work at {where} for the whole batch at once, or before training",
    fix="NumPy or TensorFlow on whole arrays instead of the loop",
)
def _python_between_steps(view: View) -> Iterator[Evidence]:
    lines = [
        line
        for line in view.account.lines
        if line.kind == PYTHON and not line.find_call(*_KERAS) and not line.parts
    ]
    if lines and view.share(*lines) >= _MOST:
        most = f"most of it at {lines[0].where}"
        yield view.spent(*lines[:6], on=f"your own Python between the steps, {most}")
