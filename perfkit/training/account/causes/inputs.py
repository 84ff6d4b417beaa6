"""How batches are made, and what Python does between the steps or in their place."""

import functools
import re
from collections.abc import Iterator

from perfkit import units
from perfkit.findings.account import COMPUTING, INPUT, PYTHON, THREAD, Line, Stage
from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.account.causes.base import WORTH, Cause, Evidence, View, cause

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
    return sorted(lines, key=lambda line: -line.spent(INPUT))


def _is_large(view: View) -> bool:
    return view.input_share >= _LARGE_INPUT


def _waiting(view: View, *lines: Line, clause: str) -> Evidence:
    """Return as evidence that the model waits for its input, and say more of it."""
    percent = units.percent(view.input_share)
    means = f"The model waits {percent} of the time for its input, {clause}."
    return Evidence(lines, means, view.input_share)


@_input_cause(
    do="Drop or shuffle elements before the expensive work at {where}",
    fix="`filter`, `take`, `skip`, `shuffle` on file names and labels; or `cache()` "
    "before them",
)
def _thrown_away(view: View) -> Iterator[Evidence]:
    costly = _expensive(view)

    def drops_work(stage: Stage) -> bool:
        # A stage that a skip calls is in no trace itself, but in the paths behind it.
        paths = (below.path[len(stage.path) :] for below in view.below(stage))
        # A whole epoch uses all that was shuffled, even if no window saw that.
        is_cut = "Shuffle" not in stage.kind or re.search("Take[^:]*::", stage.path)
        return stage.given > 0 and bool(is_cut) and any(map(_WORKS.search, paths))

    # An epoch that ends early has filled a shuffle's buffer for nothing.
    for kinds in (
        ("Filter", "TakeWhile"),
        ("Skip", "FiniteSkip", "Shard"),
        ("Shuffle", "ShuffleAndRepeat"),
    ):
        droppers = [*filter(drops_work, view.stages(*kinds))]
        inputs = sum(stage.given for stage in droppers)
        outputs = max(1, sum(stage.out for stage in droppers))
        lines = [line for stage in droppers if (line := view.line_of(stage))]
        if _is_large(view) and inputs >= _ALL_THROWN * outputs and lines and costly:
            # What is skipped or shuffled is named where that is done.
            order = (*costly, *lines) if "Filter" in kinds else (*lines, *costly)
            elements = f"{inputs / outputs:.0f} elements"
            clause = f"which makes {elements} and keeps one of them"
            yield _waiting(view, *order, clause=clause)


@_input_cause(
    do="Put `cache()` after `take`",
    fix="`.take(n).cache()`",
    mind="Every epoch then takes the same elements: shuffle behind the cache.",
    swap="no-cache",
)
def _cache_thrown_away(view: View) -> Iterator[Evidence]:
    for stage in view.account.stages:
        cached = "Cache" in stage.kind or stage.kind == "Memory"
        is_taken = re.search(r"(^|::)(Finite)?Take[^:]*::", stage.path)
        line = view.line_of(stage)
        if cached and is_taken and line and _is_large(view):
            clause = "because a `take` follows the cache, so no epoch fills it"
            yield _waiting(view, *_expensive(view)[:1], line, clause=clause)
            return


@_input_cause(
    do="Make the iterator once, before the loop, and not at {where}",
    fix="`batches = iter(dataset.repeat())` before the loop, `next(batches)` in it",
    mind="With `repeat()` the data have no end, so count the steps.",
    swap="epoch-boundary",
)
def _iterator_anew(view: View) -> Iterator[Evidence]:
    # A loop over a few batches makes one for each of its passes, too.
    often = max(_ITERATORS, view.account.updates / 2)
    for line, count in view.noted("iterators"):
        share = max(view.input_share, view.share(line))
        if count >= often and share >= _LARGE_INPUT:
            on = f"{count:,} new iterators, each of which fills its buffers again"
            yield view.spent(line, *_expensive(view)[:3], on=on, share=share)
            return


@_input_cause(
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
        reads = any(below.kind in _READERS for below in view.below(stage))
        is_hot = line and _is_large(view) and view.share(line) >= 0.02
        if line and is_hot and stage.out > _SMALL and not reads:
            clause = (
                f"in which {stage.out:,} single elements passed a `{stage.kind}` in "
                f"the traced seconds alone. The whole run made {updates:,} steps"
            )
            yield _waiting(view, line, *_expensive(view)[:3], clause=clause)
            return


@_input_cause(
    do="Spend less Python on each batch at {where}",
    fix="Work on whole batches with NumPy, once before training, or in `tf.data`; "
    "`workers=` of a `PyDataset` helps if the work releases Python's lock",
    swap="python-input",
)
def _python_batches(view: View) -> Iterator[Evidence]:
    stages = [o for o in view.stages("Generator", "PyFunc") if view.line_of(o)]
    lines = [o for o in _expensive(view) if THREAD in o.parts[:1] and o.kind == INPUT]
    share = view.share(*lines)
    if lines and share >= _LARGE_INPUT:
        means = (
            f"The model waits {units.percent(share)} of the time for Python to make "
            f"its batches{' element by element' if stages else ''}."
        )
        yield Evidence(lines[:4], means)


@_input_cause(
    do="Resize the pictures before you augment them at {where}",
    fix="`tf.image.resize` right after decoding, then a cache, then the random changes",
    mind="Augmenting after the resize gives slightly different pictures.",
)
def _full_size(view: View) -> Iterator[Evidence]:
    lines = [o for o in _expensive(view) if any(w in o.code for w in _AUGMENTS)]
    resizes = [line for line in view.input_lines if "resize" in line.code]
    later = [o for o in resizes if lines and (o.file, o.line) > (lines[0].file, 0)]
    share = view.share(*lines)
    behind = all(resize.line > line.line for line in lines for resize in later)
    if later and behind and share >= _LARGE_INPUT:
        means = (
            f"The model waits {units.percent(share)} of the time while the input "
            f"augments pictures at full size; only then {later[0].where} shrinks them."
        )
        yield Evidence(lines[:4], means)


@_input_cause(
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
    do="Make the input cheaper, {where} first",
    fix="`cache()` after the stages that repeat in every epoch, if that fits in "
    "memory; less work per example; `num_parallel_calls=tf.data.AUTOTUNE`",
    mind="Random stages, such as augmentation, must stay after the cache.",
    swap="no-cache",
)
def _input(view: View) -> Iterator[Evidence]:
    lines, stages = _expensive(view), view.account.stages
    # Arrays are fed by Keras's own stages alone.
    is_made = any(view.line_of(o) or o.kind in _READERS for o in stages)
    if lines and _is_large(view) and (is_made or any(THREAD in o.parts for o in lines)):
        yield _waiting(view, *lines[:4], clause=f"most of it at {lines[0].where}")


# Python between the steps, and steps that are Python.

_MOST = 0.35
_KERAS = ("fit", "predict", "evaluate", "train_on_batch")


@cause(
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
    share = view.account.share(sum(line.spent(COMPUTING, PYTHON) for line in lines))
    if lines and share >= _MOST:
        on = "operations that Python starts one by one, because no graph holds them"
        yield view.spent(*lines[:6], on=on, share=share)


def _calls(id: str, names: str, *, share: float = WORTH, do: str, fix: str) -> Cause:
    """A cause of lines that call one of these more than anything else."""

    def find(view: View) -> Iterator[Evidence]:
        lines = view.mostly_calling(names)
        if view.account.updates and lines and view.share(*lines) >= share:
            lines.sort(key=lambda line: -line.total_s)
            first = f"`{lines[0].calls[0].name}` at {lines[0].where}"
            yield view.spent(*lines[:4], on=f"{first}, between the steps")

    return cause(id, do=do, fix=fix)(find)


_TENSORS_READ = _calls(
    "tensors-read",
    "numpy __float__ __int__ __bool__ __array__ item",
    do="Read tensors less often than at {where}",
    fix="Sum in tensors or `keras.metrics`, and call `.numpy()` once an epoch",
)
_ARRAYS_COPIED = _calls(
    "arrays-copied",
    "concatenate append vstack hstack stack array asarray convert_to_tensor constant "
    "copy deepcopy convert_to_constant",
    do="Stop copying or converting arrays in every step at {where}",
    fix="Allocate one array and fill it; convert to tensors once, before the loop",
)
_PANDAS_ROWS = _calls(
    "pandas-rows",
    "iterrows itertuples __getitem__ iloc apply sample _ixs",
    share=2 * WORTH,
    do="Take rows from arrays, not from a DataFrame, at {where}",
    fix="`table.to_numpy()` once, before the loop",
)
_FILES_READ_AGAIN = _calls(
    "files-read-again",
    "load open imread read_csv read loadtxt decompress",
    share=2 * WORTH,
    do="Read the file at {where} once",
    fix="Read before the loop, or read parts with `np.load(..., mmap_mode='r')`",
)


@cause(
    do="Do the work at {where} for the whole batch at once, or before training",
    fix="NumPy or TensorFlow on whole arrays instead of the loop",
)
def _python_between_steps(view: View) -> Iterator[Evidence]:
    lines = [
        line
        for line in view.account.lines
        if line.kind == PYTHON and not line.find_call(*_KERAS) and not line.parts
    ]
    # Of a script that has not trained yet, this is its set-up.
    if view.account.updates and lines and view.share(*lines) >= _MOST:
        most = f"most of it at {lines[0].where}"
        yield view.spent(*lines[:6], on=f"your own Python between the steps, {most}")
