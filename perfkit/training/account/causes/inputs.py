"""How batches are made: work that is thrown away, repeated, or done in Python."""

from collections.abc import Iterator

from perfkit import units
from perfkit.findings.account import INPUT, THREAD, Line
from perfkit.training.account.causes.base import Evidence, View, cause, distinct

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


def _is_large(view: View) -> bool:
    return view.input_share >= _LARGE_INPUT


def _waits(view: View) -> str:
    return f"waits {units.percent(view.input_share)} of the time"


@cause(
    "thrown-away",
    do="Drop elements before the expensive work at {where}",
    fix="First `filter`, `take` and `skip` on file names and labels, then `map` the "
    "rest; or `cache()` before them",
    group="without input",
)
def _thrown_away(view: View) -> Iterator[Evidence]:
    for kinds in (("Filter", "TakeWhile"), ("Skip", "FiniteSkip")):
        droppers = [
            stage
            for stage in view.stages(*kinds)
            if stage.given and any(view.works_below(stage))
        ]
        inputs = sum(stage.given for stage in droppers)
        outputs = max(1, sum(stage.out for stage in droppers))
        lines = [line for stage in droppers if (line := view.line_of(stage))]
        costly = _expensive(view)
        if _is_large(view) and inputs >= _ALL_THROWN * outputs and lines and costly:
            # What is skipped is named where it is skipped.
            order = (*lines, *costly) if "Skip" in kinds else (*costly, *lines)
            yield Evidence(
                lines=distinct(*order),
                share=view.input_share,
                means=f"The model {_waits(view)} for its input, which makes "
                f"{inputs / outputs:.0f} elements and keeps one of them.",
            )


@cause(
    "cache-thrown-away",
    do="Put `cache()` after `take`",
    fix="`.take(n).cache()`",
    group="without input",
    swap="no-cache",
)
def _cache_thrown_away(view: View) -> Iterator[Evidence]:
    for stage in view.account.stages:
        above = stage.path.split("::")[:-1]
        cached = "Cache" in stage.kind or stage.kind == "Memory"
        is_taken = any(part.startswith(("Take", "FiniteTake")) for part in above)
        line = view.line_of(stage)
        if cached and is_taken and line and _is_large(view):
            yield Evidence(
                lines=(*_expensive(view)[:1], line),
                share=view.input_share,
                means="A `take` follows the cache, so no epoch fills it and TensorFlow "
                f"throws it away: the model {_waits(view)} for its input.",
            )
            return


@cause(
    "iterator-anew",
    do="Make the iterator once, before the loop, and not at {where}",
    fix="`batches = iter(dataset.repeat())` before the loop, `next(batches)` in it",
    mind="With `repeat()` the data have no end, so count the steps.",
    group="without input",
)
def _iterator_anew(view: View) -> Iterator[Evidence]:
    # A loop over a few batches makes one for each of its passes, too.
    often = max(_ITERATORS, view.account.updates / 2)
    for line, name, count in view.calls:
        if name == "iter" and count >= often and _is_large(view):
            yield Evidence(
                lines=distinct(line, *_expensive(view)[:3]),
                share=view.input_share,
                means=f"A new iterator is made {count:,} times, and each fills its "
                f"buffers again: the model {_waits(view)}.",
            )
            return


@cause(
    "single-elements",
    do="Pass on whole batches, not single elements, at {where}",
    fix="Slice whole windows or batches from the arrays, such as with "
    "`keras.utils.timeseries_dataset_from_array`, or `batch` before the map",
    group="without input",
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
            yield Evidence(
                lines=(line, *_expensive(view)[:3]),
                share=view.input_share,
                means=f"In the traced seconds {stage.out:,} single elements passed a "
                f"`{stage.kind}`. The whole run made {updates:,} steps, and the model "
                f"{_waits(view)}.",
            )
            return


@cause(
    "python-batches",
    do="Spend less Python on each batch at {where}",
    fix="Work on whole batches with NumPy, once before training, or in `tf.data`; "
    "`workers=` of a `PyDataset` helps if the work releases Python's lock",
    group="without input",
    swap="python-input",
)
def _python_batches(view: View) -> Iterator[Evidence]:
    stages = [o for o in view.stages("Generator", "PyFunc") if view.line_of(o)]
    lines = [line for line in _expensive(view) if THREAD in line.parts[:1]]
    if lines and view.share(*lines) >= _LARGE_INPUT:
        yield Evidence(
            lines=tuple(lines[:4]),
            means=f"The model waits {view.percent(*lines)} of the time for Python to "
            f"make its batches{' element by element' if stages else ''}.",
        )


@cause(
    "full-size",
    do="Resize the pictures before you augment them at {where}",
    fix="`tf.image.resize` right after decoding, then a cache if it fits in memory, "
    "then the random changes",
    mind="Augmenting after the resize gives slightly different pictures.",
    group="without input",
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


@cause(
    "map-in-turn",
    do="Run the map in parallel",
    fix="`.map(..., num_parallel_calls=tf.data.AUTOTUNE)`",
    group="without input",
    swap="serial-map",
)
def _map_in_turn(view: View) -> Iterator[Evidence]:
    for stage in view.stages("Map"):
        line = view.line_of(stage)
        if line and stage.out and _is_large(view):
            yield Evidence(
                lines=distinct(*_expensive(view)[:2], line),
                share=view.input_share,
                means=f"The model {_waits(view)} for its input, and the map at "
                f"{line.where} works on one element at a time.",
            )
            return


@cause(
    "input",
    do="Make the input cheaper, {where} first",
    fix="`cache()` after the stages that repeat in every epoch, if that fits in "
    "memory; less work per example; `num_parallel_calls=tf.data.AUTOTUNE`",
    mind="Random stages, such as augmentation, must stay after the cache.",
    group="without input",
    swap="no-cache",
)
def _input(view: View) -> Iterator[Evidence]:
    lines = _expensive(view)
    if lines and _is_large(view):
        yield Evidence(
            lines=tuple(lines[:4]),
            share=view.input_share,
            means=f"The model {_waits(view)} for its input, most of it at "
            f"{lines[0].where}.",
        )
