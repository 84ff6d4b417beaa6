"""What a script sets and calls: debugging left on, calls that are made too often."""

from collections.abc import Callable, Iterator

from perfkit import units
from perfkit.findings.account import (
    PYTHON,
    SET_UP,
    WAITING,
    Call,
    Line,
    Retraced,
)
from perfkit.findings.diagnosis import WITHOUT_OBSERVERS
from perfkit.training.account.causes.base import (
    WORTH,
    Evidence,
    View,
    cause,
    distinct,
)

# Settings that were left on: for debugging, or for another machine.


def _lines_slowed(
    setting: str, effect: str, is_slowed: Callable[[Line], bool]
) -> Callable[[View], Iterator[Evidence]]:
    def find(view: View) -> Iterator[Evidence]:
        lines = [line for line in view.account.lines if is_slowed(line)]
        for text, place in view.charges.get("settings", ()):
            if text.startswith(setting) and lines:
                setter = view.line_at(place)
                yield view.spent(
                    *([setter] if setter else []),
                    *lines[:6],
                    on=f"lines that {effect} because of it",
                    share=view.share(*lines),
                )

    return find


_EAGER_MODE = "tf.config.run_functions_eagerly(True)"
_FUNCTIONS_EAGER = cause(
    "functions-run-eagerly",
    do=f"Remove `{_EAGER_MODE}`",
    fix="Delete the line, or run it only where needed",
    swap="eager",
)(
    _lines_slowed(
        _EAGER_MODE,
        "Python runs one operation at a time",
        lambda line: line.is_eager,
    )
)
_FLOAT16 = cause(
    "float16-on-a-processor",
    do="Train in float32 on a processor: {where}",
    fix="Remove the policy, or use `mixed_bfloat16` if a race shows it is faster",
    swap="precision",
)(
    _lines_slowed(
        "keras.config.set_dtype_policy(",
        "compute in float16, which a processor must convert,",
        lambda line: line.is_part("layer"),
    )
)

# Calls that are made too often, or in the wrong place.

# A call in a loop: so often, and mostly something else than computing.
_OFTEN, _FEW = 20, 4
_OVERHEAD = 0.5
_SHORT_S = 0.5
_WEIGHTS = ("get_weights", "set_weights", "assign", "load_weights", "count_params")
_SAVES = ("save", "save_weights", "save_model", "ModelCheckpoint", "export")


def _mean(seconds: float, count: int) -> str:
    """Return the mean seconds of a call in words."""
    return units.seconds(seconds / max(1, count))


def _count(*calls: Call) -> str:
    """Return in words how often one thing was called, and how long each took."""
    count = sum(call.count for call in calls)
    mean = _mean(sum(call.seconds for call in calls), count)
    return f"{count:,} calls of `{calls[0].name}`, {mean} each"


def _around(line: Line, call: Call, *kinds: str) -> float:
    """Return the share of a call that goes into these kinds on its own line.

    What the network computes in it is on the lines of layers.
    """
    spent = sum(line.seconds.get(kind, 0.0) for kind in kinds)
    return spent / max(call.seconds, line.total_s)


def _compiling(view: View) -> list[tuple[Line, int]]:
    """Lines that compile a model in a loop, and how often."""
    calls = [(line, line.find_call("compile")) for line in view.account.lines]
    return [(line, call.count) for line, call in calls if call and call.count >= _FEW]


@cause(
    "predict-per-row",
    do="Call the model, not `predict`, for few rows at a time",
    fix="`model(rows, training=False)` for a few rows, or one `predict_on_batch` "
    "for all rows at once",
    mind="`model(...)` returns a tensor: `.numpy()` turns it into an array.",
)
def _predict_per_row(view: View) -> Iterator[Evidence]:
    overheads = (SET_UP, PYTHON, WAITING)
    pairs = [
        (line, call)
        for line in view.account.lines
        if (call := line.find_call("predict", "evaluate"))
        and call.count >= _OFTEN
        and call.seconds / call.count <= _SHORT_S
        and _around(line, call, *overheads) > _OVERHEAD
    ]
    if pairs:
        line, call = pairs[0]
        same = (other for _, other in pairs if other.name == call.name)
        yield view.spent(
            *(line for line, _ in pairs),
            on=f"{_count(*same)}; {units.percent(_around(line, call, *overheads))} "
            "of that is setting up and Python, not the network",
        )


@cause(
    "model-in-loop",
    do="Make the model once, not in each turn at {where}",
    fix="Keep `model.get_weights()` and the optimizer's variables of the first turn, "
    "and assign them again in each later one",
    mind="Turns that train other networks, as a search does, need new models.",
)
def _model_in_loop(view: View) -> Iterator[Evidence]:
    share = view.account.share(view.account.kinds[SET_UP])
    lines = [
        line
        for line in view.account.lines
        if line.seconds.get(SET_UP, 0.0) > _OVERHEAD * line.total_s
    ]
    for line, count in view.noted("new_models"):
        yield Evidence(
            lines=distinct(line, *lines),
            share=share,
            means=f"{units.count(count, 'new model')} since the training began. Each "
            f"is built and traced anew: {units.percent(share)} of the time.",
        )


@cause(
    "compile-in-loop",
    do="Compile once, before the loop",
    fix="Move `model.compile(...)` out of the loop; for a new rate set "
    "`model.optimizer.learning_rate = ...`",
    mind="A new `compile` also resets the optimizer: reset it yourself if you "
    "want that.",
)
def _compile_in_loop(view: View) -> Iterator[Evidence]:
    for line, count in _compiling(view):
        traced = [o for o in view.hot(0.0) if o.traces and o is not line]
        spent = sum(trace.seconds for o in traced for trace in o.traces)
        if spent:
            yield Evidence(
                lines=(line, *traced),
                share=view.account.share(spent),
                means=f"The script calls `compile` {count} times. Each call discards "
                f"the traced step, and retracing took {units.seconds(spent)}.",
            )


@cause(
    "fit-in-loop",
    do="Call `fit` once for all the data, or `train_on_batch` for each batch",
    fix="One `fit` over a `tf.data.Dataset` (`from_generator`) that goes through "
    "the parts",
    mind="`fit` does not shuffle a dataset: shuffle the rows within each part.",
)
def _fit_in_loop(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("fit", often=_FEW):
        around = line.seconds.get(SET_UP, 0.0) + line.seconds.get(PYTHON, 0.0)
        if around < WORTH * line.total_s or (line.traces and _compiling(view)):
            continue
        yield Evidence(
            lines=(line,),
            means=f"{call.count:,} calls of `fit` in this time, "
            f"{_mean(line.total_s, call.count)} each. Each one sets up its own loop, "
            f"data and callbacks: {units.percent(view.account.share(around))} of the "
            "time.",
        )


@cause(
    "evaluated-often",
    do="Evaluate less often, or on fewer examples",
    fix="Every few epochs, or `validation_data=` with `validation_freq=`",
)
def _evaluated_often(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("evaluate", "predict", often=_FEW):
        if call.seconds / call.count >= _SHORT_S:
            yield view.spent(line, on=_count(call))


@cause(
    "weights-copied",
    do="Copy weights less often, or inside a graph",
    fix="`for a, b in zip(target.variables, model.variables): a.assign(b)` in one "
    "`tf.function`, every few hundred steps",
)
def _weights_copied(view: View) -> Iterator[Evidence]:
    lines = view.mostly_calling(*_WEIGHTS)
    if lines:
        call = lines[0].calls[0]
        yield view.spent(
            *lines, on=f"copying weights, `{call.name}` {call.count:,} times"
        )


@cause(
    "saved-often",
    do="Save less often",
    fix='`ModelCheckpoint(..., save_freq="epoch", save_weights_only=True)`, or '
    "every few epochs",
    group=WITHOUT_OBSERVERS,
    swap="callback",
)
def _saved_often(view: View) -> Iterator[Evidence]:
    for line, call in view.calling(*_SAVES):
        often = f" {call.count:,} times" if call.count else ""
        share = view.account.share(call.seconds)
        yield view.spent(line, on=f"`{call.name}`{often}", share=share)


@cause(
    "callback",
    do="Let the callback at {where} do less",
    fix="Every hundredth step, or at the end of an epoch",
    group=WITHOUT_OBSERVERS,
    swap="callback",
)
def _callback(view: View) -> Iterator[Evidence]:
    for line in view.hot():
        for part in line.parts:
            kind, _, name = part.partition(" ")
            call = line.find_call(name) if kind == "callback" else None
            share = view.account.share(call.seconds) if call else 0.0
            if share >= WORTH and name != "ModelCheckpoint":
                yield view.spent(line, on=f"`{name}`", share=share)


def _what_differs(traces: Retraced) -> str:
    """What differs from one trace to the next; "" for nothing."""
    after = [change.rpartition(", then ")[2] for change in traces.because]
    if not after:
        return ""
    return "tensors" if all(words.endswith("]") for words in after) else "values"


@cause(
    "traced-again",
    do="Stop retracing the function of {where}",
    fix="Make the `tf.function` once, outside the loop. Pass a value that changes as a "
    "tensor (`tf.constant(value)`); for tensors of many shapes use "
    "`@tf.function(reduce_retracing=True)`",
    swap="retracing",
)
def _traced_again(view: View) -> Iterator[Evidence]:
    for line in view.account.lines:
        share = view.account.share(sum(trace.seconds for trace in line.traces))
        if share < WORTH or _compiling(view):
            continue
        if line.find_call("fit", "predict", "evaluate"):
            continue
        first = line.traces[0]
        differs = _what_differs(first)
        because = f", each for other {differs} ({first.because[0]})" if differs else ""
        places = [at for caller, at in view.noted("definitions") if caller is line]
        # Which tensors it takes is said where it is defined.
        defined = map(view.line_at, places if differs == "tensors" else ())
        yield Evidence(
            lines=distinct(*filter(None, defined), line),
            means=f"`{first.name}` was traced {first.count} times{because}, "
            f"{_mean(first.seconds, first.count)} each: {units.percent(share)} of the "
            "time.",
            share=share,
        )


@cause(
    "model-called-eagerly",
    do="Put the call at {where} into a `tf.function`",
    fix="`@tf.function` on the function around it",
    mind="Python inside it, such as a print or a counter, then runs once.",
    swap="eager",
)
def _model_called_eagerly(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("__call__", often=_OFTEN):
        if line.is_eager:
            calls = f"{call.count:,} calls"
            yield view.spent(
                line, on=f"{calls} whose operations Python starts one by one"
            )
