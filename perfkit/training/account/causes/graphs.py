"""What a step computes: loops, layers, updates, compiling."""

from collections.abc import Iterator

from perfkit import units
from perfkit.findings.account import COMPUTING, INPUT, PYTHON, SET_UP, THREAD, Line
from perfkit.findings.diagnosis import WITHOUT_OBSERVERS
from perfkit.training.account.causes.base import WORTH, Evidence, View, cause

_LOOPS = {"NextIteration", "Merge", "Switch", "Enter", "TensorListGetItem", "LoopCond"}
_TEXT = {
    *("StringSplitV2", "StringSplit", "LookupTableFindV2", "StaticRegexReplace"),
    *("RegexReplace", "StringLower", "StringToHashBucketFast", "UnicodeDecode"),
}
_SOLVES = {
    *("Svd", "SelfAdjointEigV2", "Qr", "Cholesky", "MatrixInverse", "MatrixSolve"),
    *("LogMatrixDeterminant", "MatrixDeterminant", "Eig", "XlaSvd"),
}
# What gathers the rows of a table that a batch has used.
_SPARSE = {"UnsortedSegmentSum", "ResourceScatterAdd", "ScatterNd"}
_CALLS_PYTHON = {"EagerPyFunc", "PyFunc", "PyFuncStateless"}
_LOOPING = ("map_fn", "scan(", "while_loop", "vectorized_map", "foldl", "foldr")
# Their loop over time is what they are.
_RECURRENT = ("LSTM", "GRU", "RNN", "LSTM1D", "LSTM2D", "LSTM3D", "Bidirectional")
# Their work grows with the length of a sequence.
_SEQUENTIAL = (*_RECURRENT, "LSTMCell", "GRUCell", "Conv1D", "MultiHeadAttention")
_PASSES, _LAYERS = 4, 3
_MOSTLY, _THROUGH = 0.6, 0.05
# An embedding's update takes a third of a healthy step.
_MOST = 0.5
_MANY, _VERY_MANY, _LARGE = 300, 800, 500_000


def _types(line: Line) -> set[str]:
    return {name for name, _ in line.types}


def _says(line: Line, *words: str) -> bool:
    return any(word in line.code for word in words)


@cause(
    do="Replace the loop at {where} with operations on whole tensors",
    fix="Masks, `tf.gather`, `tf.einsum` or `tf.reduce_*` on the whole batch along an "
    "axis, instead of `for`, `map_fn`, `scan` or `while_loop`",
)
def _loop_in_step(view: View) -> Iterator[Evidence]:
    # A loop makes so many operations, and so does a line that makes a whole network.
    lines = [
        line
        for line in view.account.lines
        if line.operations >= _MANY
        and view.share(line) > 0.005
        and line.kind == COMPUTING
        and not line.is_part("optimizer")
        and not line.find_call("fit", "train_on_batch", "evaluate")
        and sum(part.startswith("layer ") for part in line.parts) < _LAYERS
        and not any(part.endswith(_RECURRENT) for part in line.parts)
    ]
    count = sum(line.operations for line in lines)
    in_graph = any(_types(line) & _LOOPS or _says(line, *_LOOPING) for line in lines)
    if in_graph or count >= _VERY_MANY:
        unrolled = "" if in_graph else ", because a Python loop made each of them"
        on = f"{count:,.0f} small operations in each step{unrolled}"
        yield view.spent(*lines, on=on)


@cause(
    do="Take the Python that {where} calls out of the step",
    fix="Compute it once, before training, or write it with operations of TensorFlow",
)
def _python_in_step(view: View) -> Iterator[Evidence]:
    lines = view.account.lines
    calling = [line for line in lines if _types(line) & _CALLS_PYTHON]
    called = [o for o in lines if THREAD in o.parts[:1] and o.kind == PYTHON]
    if calling and called:
        on = "Python that the step calls (`py_function` or `numpy_function`)"
        yield view.spent(*calling, *called, on=on)


@cause(
    do="Compute only the entries of the jacobian that you use, at {where}",
    fix="`tape.gradient` of a sum for a diagonal; `batch_jacobian` per example",
)
def _jacobian(view: View) -> Iterator[Evidence]:
    for line in view.hot():
        called = line.find_call("jacobian", "batch_jacobian")
        if called or line.is_part("jacobian") or _says(line, "jacobian("):
            yield view.spent(line, on="a whole jacobian")


@cause(
    do="Take one gradient per step at {where}",
    fix="Add up the losses first: the gradient of a sum is the sum of the gradients",
    mind="The result differs if you change each gradient by itself, as clipping does.",
)
def _backward_often(view: View) -> Iterator[Evidence]:
    backward_s = (o.backward * o.spent(COMPUTING) for o in view.account.lines)
    share = view.account.share(sum(backward_s))
    for line, count in view.noted("backward"):
        if count >= _PASSES and share >= 2 * WORTH:
            gradients = f"the {count} gradients that {line.where} takes in each step"
            yield view.spent(line, on=gradients, share=share)


@cause(
    do="Update only the rows that a batch uses",
    fix="A smaller table (hash the rare ids), or `SGD` for it, which has no state",
    mind="`SGD` learns differently from `Adam`: tune its learning rate.",
)
def _dense_update(view: View) -> Iterator[Evidence]:
    for line in view.hot(_MOST):
        sparse = _types(line) & _SPARSE
        if sparse and line.is_part("optimizer") and line.elements >= _LARGE:
            # The table is what somebody chose; the update follows from it.
            tables = [o for o in view.account.lines if _says(o, "Embedding(")]
            made = f" (tables: {', '.join(o.where for o in tables)})" if tables else ""
            yield view.spent(
                *tables,
                line,
                on=f"the optimizer's update of a variable with {line.elements:,} "
                f"weights, all of them in every step{made}",
                share=view.share(line),
            )


@cause(
    do="Compute the frozen layers once, and train on their outputs",
    fix="`features = base.predict(x)`, then fit the head on `features`",
    mind="Augmentation in front of the frozen layers then has no effect.",
)
def _frozen_layers(view: View) -> Iterator[Evidence]:
    frozen = view.charges.get("frozen", ())
    layers = [o for o in view.account.lines if o.total_s and o.is_part("layer")]
    # Where gradients flow through them, their input is what is trained.
    fixed = [line for line in layers if line.backward <= _THROUGH]
    lines = [line for line in fixed if line.parts[0].split(" ")[1] in frozen]
    # In a step of one's own the line to change is the one that calls them.
    places = [by for line, by in view.noted("callers") if any(line is o for o in lines)]
    if lines and view.share(*lines) >= 2 * WORTH:
        yield view.spent(
            *map(view.line_at, places),
            *lines,
            on="layers that are not trained, although an example's output is the same "
            "in every epoch",
            share=view.share(*lines),
        )


@cause(
    do="Pad each batch only to its own longest example, at {where}",
    fix="`Dataset.bucket_by_sequence_length`, or sort by length and `padded_batch`",
    mind="Each batch is then less random, so shuffle first.",
    swap="padding",
)
def _padding(view: View) -> Iterator[Evidence]:
    lines = [o for o in view.hot() if any(p.endswith(_SEQUENTIAL) for p in o.parts)]
    spent = view.share(*lines)
    for line, share in view.noted("padded"):
        if share >= _MOSTLY and spent >= 2 * WORTH:
            means = (
                f"{units.percent(share)} of the examples' length is padding, and "
                f"{units.percent(spent)} of the time goes into layers that compute all "
                "of it."
            )
            yield Evidence((line, *lines), means, spent)


@cause(
    do="Give all batches the same shape, or remove `jit_compile`",
    fix="`padded_batch(..., padded_shapes=...)` with a fixed length, or a few lengths",
)
def _xla_shapes(view: View) -> Iterator[Evidence]:
    for line, _ in view.calling("fit", "train_on_batch", "__call__"):
        share = view.account.share(line.spent(SET_UP))
        # The set-up of many calls is their own.
        many = any(call.count >= 4 for call in line.calls)
        if share > 2 * WORTH and not line.traces and not many:
            shapes = "compiling the step with XLA, once for every new shape"
            yield view.spent(line, on=shapes, share=share)


@cause(
    do="Tokenize text in the input, not in the model",
    fix="`data.map(lambda t, y: (vectorize(t), y)).cache()`",
)
def _text_in_model(view: View) -> Iterator[Evidence]:
    lines = [o for o in view.hot(0.02) if _types(o) & _TEXT and o.kind != INPUT]
    if lines:
        yield view.spent(*lines, on="tokenizing text in the step")


@cause(
    do="Decompose less often, or approximately, at {where}",
    fix="A power iteration, or every tenth step",
    mind="An approximation learns differently: watch the loss.",
)
def _decomposition(view: View) -> Iterator[Evidence]:
    for line in view.hot():
        if types := _types(line) & _SOLVES:
            yield view.spent(line, on=f"{', '.join(sorted(types))} in each step")


@cause(
    do="Take the metric at {where} out of the training steps",
    fix="Compute it in validation, once an epoch",
    group=WITHOUT_OBSERVERS,
    swap="callback",
)
def _metric(view: View) -> Iterator[Evidence]:
    for line in view.hot(2 * WORTH):
        name = line.parts[0].partition(" ")[2] if line.is_part("metric") else ""
        if name:
            yield view.spent(line, on=f"the metric `{name}` in every step")
