"""What a script sets and calls: debugging left on, calls that are made too often."""

from collections.abc import Iterator

from perfkit import units
from perfkit.findings.account import PYTHON, SET_UP, WAITING, Call, Line
from perfkit.findings.diagnosis import WITHOUT_OBSERVERS
from perfkit.training.account.causes.base import WORTH, Evidence, View, cause
from perfkit.training.account.watch import EAGER_STEPS

# Settings that were left on: for debugging, or for another machine.

_EAGER_MODE = "tf.config.run_functions_eagerly(True)"
_DEBUG_MODE = "tf.data.experimental.enable_debug_mode()"


def _slowed(
    view: View, setting: str, effect: str, lines: list[Line]
) -> Iterator[Evidence]:
    """Lines that a setting slows, behind the one that sets it."""
    for text, place in view.charges.get("settings", ()):
        if text.startswith(setting) and lines:
            on, share = f"lines that {effect} because of it", view.share(*lines)
            yield view.spent(view.line_at(place), *lines[:6], on=on, share=share)


def _run_eagerly(view: View, setting: str) -> Iterator[Evidence]:
    lines = [line for line in view.account.lines if line.is_eager]
    return _slowed(view, setting, "Python runs one operation at a time", lines)


@cause(do=f"Remove `{_EAGER_MODE}`", fix="Delete the line", swap="eager")
def _functions_run_eagerly(view: View) -> Iterator[Evidence]:
    return _run_eagerly(view, _EAGER_MODE)


@cause(
    do=f"Remove `{EAGER_STEPS}` at {{where}}",
    fix="Delete that argument of `compile`",
    swap="eager",
)
def _steps_run_eagerly(view: View) -> Iterator[Evidence]:
    return _run_eagerly(view, EAGER_STEPS)


@cause(do=f"Remove `{_DEBUG_MODE}`", fix="Delete the line", swap="debugging")
def _input_runs_eagerly(view: View) -> Iterator[Evidence]:
    effect = "Python runs for one element at a time"
    return _slowed(view, _DEBUG_MODE, effect, list(view.input_lines))


@cause(
    do="Train in float32: {where}",
    fix="Remove that setting, or use `mixed_bfloat16` if a race shows it is faster",
    swap="precision",
)
def _slow_type(view: View) -> Iterator[Evidence]:
    lines = [line for line in view.account.lines if line.is_part("layer")]
    effect = "compute in a type that is slow here"
    return _slowed(view, "keras.config.set_dtype_policy(", effect, lines)


# Calls that are made too often, or in the wrong place.

# A call in a loop: so often, and mostly something else than computing.
_OFTEN, _FEW, _MUCH = 20, 4, 0.25
_OVERHEAD = 0.5
_SHORT_S = 0.5
_SAVES = ("save", "save_weights", "save_model", "ModelCheckpoint", "export")


def _count(*calls: Call) -> str:
    """Return in words how often one thing was called, and how long each took."""
    count = sum(call.count for call in calls)
    mean = units.seconds(sum(call.seconds for call in calls) / count)
    return f"{count:,} calls of `{calls[0].name}`, {mean} each"


def _overhead(line: Line, call: Call) -> float:
    """Return the share of a call that its own line takes, and no layer's."""
    return line.spent(SET_UP, PYTHON, WAITING) / max(call.seconds, line.total_s)


def _compiling(view: View) -> list[tuple[Line, int]]:
    """Lines that compile a model in a loop, and how often."""
    calls = [(line, line.find_call("compile")) for line in view.account.lines]
    return [(line, call.count) for line, call in calls if call and call.count >= _FEW]


@cause(
    do="Call the model, not `predict`, for few rows at a time",
    fix="`model(rows, training=False)`, or one `predict_on_batch` for all rows at once",
    mind="`model(...)` returns a tensor: `.numpy()` turns it into an array.",
)
def _predict_per_row(view: View) -> Iterator[Evidence]:
    pairs = [
        (line, call)
        for line in view.account.lines
        if (call := line.find_call("predict", "evaluate"))
        and call.count >= _OFTEN
        and call.seconds / call.count <= _SHORT_S
        and _overhead(line, call) > _OVERHEAD
    ]
    if pairs:
        line, call = pairs[0]
        same = (other for _, other in pairs if other.name == call.name)
        yield view.spent(
            *(line for line, _ in pairs),
            on=f"{_count(*same)}; {units.percent(_overhead(line, call))} of that is "
            "setting up and Python, not the network",
        )


@cause(
    do="Make the model once, not in each turn at {where}",
    fix="Keep `get_weights()` and the optimizer's variables; assign them in each turn",
    mind="Turns that train other networks, as a search does, need new models.",
)
def _model_in_loop(view: View) -> Iterator[Evidence]:
    share = view.account.share(view.account.kinds[SET_UP])
    lines = [o for o in view.account.lines if o.spent(SET_UP) > _OVERHEAD * o.total_s]
    if made := [*view.noted("new_models")]:
        most = max(count for _, count in made)
        means = (
            f"{units.count(most, 'new model')} since the training began. Each "
            f"is built and traced anew: {units.percent(share)} of the time."
        )
        yield Evidence((*(line for line, _ in made), *lines), means, share)


@cause(
    do="Compile once, before the loop",
    fix="For a new rate set `model.optimizer.learning_rate = ...` in the loop",
    mind="A new `compile` also resets the optimizer: do that yourself if you need it.",
)
def _compile_in_loop(view: View) -> Iterator[Evidence]:
    models = sum(count for *_, count in view.charges.get("models", ()))
    for line, count in _compiling(view):
        if count < models + _FEW:
            # A new model has to be compiled.
            continue
        traced = [o for o in view.hot(0.0) if o.traces and o is not line]
        spent = sum(trace.seconds for o in traced for trace in o.traces)
        if spent:
            means = (
                f"The script calls `compile` {count} times. Each call discards "
                f"the traced step, and retracing took {units.seconds(spent)}."
            )
            yield Evidence((line, *traced), means, view.account.share(spent))


@cause(
    do="Call `fit` once for all the data, or `train_on_batch` for each batch",
    fix="One `fit` over a `tf.data.Dataset.from_generator` that goes through the parts",
    mind="`fit` does not shuffle a dataset: shuffle the rows within each part.",
)
def _fit_in_loop(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("fit", often=_FEW):
        around = line.spent(SET_UP, PYTHON)
        if around >= WORTH * line.total_s and not (line.traces and _compiling(view)):
            mean = units.seconds(line.total_s / call.count)
            means = (
                f"{call.count:,} calls of `fit` in this time, {mean} each. Each one "
                "sets up its own loop, data and callbacks: "
                f"{units.percent(view.account.share(around))} of the time."
            )
            yield Evidence((line,), means)


@cause(
    do="Evaluate less often, or on fewer examples",
    fix="Every few epochs, or `validation_data=` with `validation_freq=`",
)
def _evaluated_often(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("evaluate", "predict", often=_FEW):
        # Once an epoch is usual, and costs as much as a tenth of the training.
        is_much = view.share(line) >= _MUCH
        if is_much and call.seconds / call.count >= _SHORT_S:
            yield view.spent(line, on=_count(call))


@cause(
    do="Copy weights less often than at {where}",
    fix="Once an epoch, in `on_epoch_end`; from model to model, `a.assign(b)` for each "
    "variable in one `tf.function`",
)
def _weights_copied(view: View) -> Iterator[Evidence]:
    names = "get_weights set_weights assign load_weights count_params"
    if lines := view.mostly_calling(names):
        call = lines[0].calls[0]
        on = f"copying weights, `{call.name}` {call.count:,} times"
        yield view.spent(*lines, on=on)


@cause(
    do="Save less often",
    fix='`ModelCheckpoint(..., save_freq="epoch", save_weights_only=True)`',
    group=WITHOUT_OBSERVERS,
    swap="callback",
)
def _saved_often(view: View) -> Iterator[Evidence]:
    for line, call in view.calling(*_SAVES):
        often = f" {call.count:,} times" if call.count else ""
        share = view.account.share(call.seconds)
        yield view.spent(line, on=f"`{call.name}`{often}", share=share)


@cause(
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


@cause(
    do="Stop retracing the function of {where}",
    fix="Make it once, outside the loop. Pass changing values as `tf.constant(value)`; "
    "for tensors of many shapes use `@tf.function(reduce_retracing=True)`",
    swap="retracing",
)
def _traced_again(view: View) -> Iterator[Evidence]:
    for line in view.account.lines:
        share = view.account.share(sum(trace.seconds for trace in line.traces))
        of_keras = line.find_call("fit", "predict", "evaluate")
        if share < WORTH or _compiling(view) or of_keras:
            continue
        first, because, defined = line.traces[0], "", list[Line | None]()
        after = [change.rpartition(", then ")[2] for change in first.because]
        if after:
            shapes = all(words.endswith("]") for words in after)
            differs = "tensors" if shapes else "values"
            because = f", each for other {differs} ({first.because[0]})"
            if shapes:
                # Which tensors it takes is said where it is defined.
                places = view.noted("definitions")
                defined = [view.line_at(at) for by, at in places if by is line]
        means = (
            f"`{first.name}` was traced {first.count} times{because}, "
            f"{units.seconds(first.seconds / first.count)} each: "
            f"{units.percent(share)} of the time."
        )
        yield Evidence((*defined, line), means, share)


@cause(
    do="Put the call at {where} into a `tf.function`",
    fix="`@tf.function` on the function around it",
    mind="Python inside it, such as a print or a counter, then runs once.",
    swap="eager",
)
def _model_called_eagerly(view: View) -> Iterator[Evidence]:
    for line, call in view.calling("__call__", often=_OFTEN):
        # Of a function's call the graph has the seconds.
        if line.is_eager and line.eager_s > call.seconds / 4:
            on = f"{call.count:,} calls whose operations Python starts one by one"
            yield view.spent(line, on=on)
