"""What a step computes: loops, layers, updates, compiling."""

from collections.abc import Iterator

from perfkit import units
from perfkit.account.causes.base import WORTH, Cause, Evidence, Seen
from perfkit.findings.account import Line

_LOOPS = frozenset(
    {"NextIteration", "Merge", "Switch", "Enter", "TensorListGetItem", "LoopCond"}
)
_TEXT = frozenset(
    {
        *("StringSplitV2", "StringSplit", "LookupTableFindV2", "StaticRegexReplace"),
        *("RegexReplace", "StringLower", "StringToHashBucketFast", "UnicodeDecode"),
    }
)
_SOLVES = frozenset(
    {
        *("Svd", "SelfAdjointEigV2", "Qr", "Cholesky", "MatrixInverse", "MatrixSolve"),
        *("LogMatrixDeterminant", "MatrixDeterminant", "Eig", "XlaSvd"),
    }
)
# What gathers the rows of a table that a batch has used.
_SPARSE = frozenset({"UnsortedSegmentSum", "ResourceScatterAdd", "ScatterNd"})
_LOOPING = ("map_fn", "scan(", "while_loop", "vectorized_map", "foldl", "foldr")
# Their loop over time is what they are.
_RECURRENT = ("LSTM", "GRU", "RNN", "LSTM1D", "LSTM2D", "LSTM3D", "Bidirectional")
_PASSES, _LAYERS = 4, 3
# An embedding's update takes a third of a healthy step.
_MOST = 0.5
_MANY, _VERY_MANY, _LARGE = 300, 800, 500_000


def _types(line: Line) -> set[str]:
    return {name for name, _ in line.types}


def _looping(seen: Seen) -> list[Line]:
    """Lines of which a step runs so many operations that a loop makes them."""
    return [
        o
        for o in seen.account.lines
        if o.operations >= _MANY
        and seen.share(o) > 0.005
        and o.kind == "computing"
        and not o.is_part("optimizer")
        and not o.called("fit", "train_on_batch", "evaluate")
        # A line that makes a whole network has many operations for that.
        and sum(part.startswith("layer ") for part in o.parts) < _LAYERS
        and not any(part.endswith(_RECURRENT) for part in o.parts)
    ]


def _loop(seen: Seen) -> Iterator[Evidence]:
    lines = _looping(seen)
    within = [o for o in lines if _types(o) & _LOOPS or _says(o, *_LOOPING)]
    if not within:
        return
    count = sum(one.operations for one in lines)
    yield Evidence(
        lines=tuple(lines),
        means=f"{seen.percent(*lines)} of the time is computed in a loop within the "
        f"graph: {count:,.0f} small operations in each step.",
    )


def _says(line: Line, *words: str) -> bool:
    return any(word in line.code for word in words)


def _unrolled(seen: Seen) -> Iterator[Evidence]:
    lines = _looping(seen)
    count = sum(one.operations for one in lines)
    if any(_types(o) & _LOOPS for o in lines) or count < _VERY_MANY:
        return
    yield Evidence(
        lines=tuple(lines),
        means=f"{seen.percent(*lines)} of the time goes into {count:,.0f} small "
        "operations in each step: a loop of Python made each of them.",
    )


def _update(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot(_MOST):
        sparse = _types(line) & _SPARSE
        if sparse and line.is_part("optimizer") and line.elements >= _LARGE:
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time is the optimizer's update, of "
                f"a variable with {line.elements:,} weights in each step.",
            )


def _frozen(seen: Seen) -> Iterator[Evidence]:
    lines = tuple(
        o
        for o in seen.account.lines
        if o.total_s and o.is_part("layer") and o.parts[0].split(" ")[1] in seen.frozen
    )
    if lines and seen.share(*lines) >= 2 * WORTH:
        yield Evidence(
            lines=lines,
            means=f"{seen.percent(*lines)} of the time is computed in layers that are "
            "not trained: of the same example they give the same in each epoch.",
        )


def _compiling(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        share = seen.account.share(line.seconds.get("set-up", 0.0))
        runs = line.called("fit", "train_on_batch", "__call__")
        if share > 2 * WORTH and runs and not (line.traces or _overhead(line)):
            yield Evidence(
                lines=(line,),
                means=f"{units.percent(share)} of the time XLA compiles the step, anew "
                "for each shape that it has not met.",
            )


def _overhead(line: Line) -> bool:
    """Whether its set-up is that of many calls."""
    return any(one.count >= 4 for one in line.calls)


def _text(seen: Seen) -> Iterator[Evidence]:
    lines = tuple(o for o in seen.hot(0.02) if _types(o) & _TEXT and not _is_input(o))
    if lines and seen.share(*lines) >= WORTH:
        yield Evidence(
            lines=lines,
            means=f"{seen.percent(*lines)} of the time the step takes text apart.",
        )


def _is_input(line: Line) -> bool:
    return line.kind == "input"


def _solved(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        if found := _types(line) & _SOLVES:
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time is {', '.join(sorted(found))} "
                "in each step.",
            )


def _measured(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        if line.is_part("metric") and seen.share(line) >= 2 * WORTH:
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time is the metric "
                f"`{line.parts[0].partition(' ')[2]}`, computed in each step.",
            )


def _backward(seen: Seen) -> Iterator[Evidence]:
    spent = sum(
        one.backward * one.seconds.get("computing", 0.0) for one in seen.account.lines
    )
    share = seen.account.share(spent)
    for line, count in seen.backward:
        if count >= _PASSES and share >= 2 * WORTH:
            yield Evidence(
                lines=(line,),
                share=share,
                means=f"{line.where} goes backward {count} times in each step: "
                f"{units.percent(share)} of the time.",
            )


def _jacobian(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        if line.called("jacobian", "batch_jacobian") or _says(line, "jacobian("):
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time goes into a whole jacobian.",
            )


CAUSES = (
    Cause(
        id="loop-in-graph",
        applies=_loop,
        do="Take the loop out of the graph at {where}",
        fix="The same operations on the whole batch, along an axis, without `map_fn`, "
        "`scan` or `while_loop`",
    ),
    Cause(
        id="loop-unrolled",
        applies=_unrolled,
        do="Replace the Python loop at {where} by operations on whole tensors",
        fix="Masks, `tf.gather`, `tf.einsum` or `tf.reduce_*` over an axis in place of "
        "`for`",
    ),
    Cause(
        id="jacobian",
        applies=_jacobian,
        do="Compute only what is used of the jacobian at {where}",
        fix="`tape.gradient` of a sum for a diagonal; `batch_jacobian` per example",
    ),
    Cause(
        id="backward-often",
        applies=_backward,
        do="Go backward once a step, not often, at {where}",
        fix="Add the losses up first: a gradient of a sum is the sum of gradients",
        mind="Where each gradient is changed by itself, such as clipped, that differs.",
    ),
    Cause(
        id="dense-update",
        applies=_update,
        do="Update only the rows that a batch uses",
        fix="A smaller table (hash the rare ids), or an optimizer without state for "
        "it, such as `SGD`",
        mind="`SGD` learns otherwise than `Adam`: tune its rate.",
    ),
    Cause(
        id="frozen-layers",
        applies=_frozen,
        do="Compute the frozen layers once, and train on what they give",
        fix="`features = base.predict(x)`, then fit the head on `features`",
        mind="That leaves out augmentation in front of the frozen layers.",
    ),
    Cause(
        id="xla-shapes",
        applies=_compiling,
        do="Give all batches one shape, or leave `jit_compile` out",
        fix="`padded_batch(..., padded_shapes=...)` with a fixed length, or a few "
        "bucket lengths",
    ),
    Cause(
        id="text-in-model",
        applies=_text,
        do="Take text apart in the input, not in the model",
        fix="`data.map(lambda t, y: (vectorize(t), y)).cache()`",
    ),
    Cause(
        id="decomposition",
        applies=_solved,
        do="Decompose less often, or approximately, at {where}",
        fix="A power iteration, or every tenth step",
        mind="An approximation learns otherwise: watch the loss.",
    ),
    Cause(
        id="metric",
        applies=_measured,
        do="Leave the metric at {where} out of training steps",
        fix="Compute it in validation, once an epoch",
        group="without observers",
        swap="callback",
    ),
)
