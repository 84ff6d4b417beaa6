"""Calls that are made too often, or in the wrong place."""

from collections.abc import Iterator

from perfkit import units
from perfkit.account.causes.base import WORTH, Cause, Evidence, Seen, each

# A call in a loop: so often, and mostly something else than computing.
_OFTEN, _FEW = 20, 4
_OVERHEAD = 0.5
_SHORT_S = 0.5


def _predict(seen: Seen) -> Iterator[Evidence]:
    found = []
    for line in seen.account.lines:
        call = line.called("predict", "evaluate")
        if not call or call.count < _OFTEN or call.seconds / call.count > _SHORT_S:
            continue
        if seen.kind_share(line, "set-up", "Python", "waiting") > _OVERHEAD:
            found.append((line, call))
    if not found:
        return
    lines = tuple(line for line, _ in found)
    line, call = found[0]
    most = units.percent(seen.kind_share(line, "set-up", "Python", "waiting"))
    yield Evidence(
        lines=lines,
        means=f"{seen.percent(*lines)} of the time goes into {call.count:,} calls of "
        f"`{call.name}`, {each(call.seconds, call.count)} each; {most} of that is "
        "setting up and Python, not the network.",
    )


def _fit(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        call = line.called("fit")
        if not call or call.count < _FEW:
            continue
        around = line.seconds.get("set-up", 0.0) + line.seconds.get("Python", 0.0)
        if around < WORTH * line.total_s:
            continue
        compiles = _compiled(seen)
        if compiles and line.traces:
            continue
        yield Evidence(
            lines=(line,),
            means=f"{call.count:,} calls of `fit` in this time, "
            f"{each(line.total_s, call.count)} each. Each one sets up its own loop, "
            f"data and callbacks: {units.percent(seen.account.share(around))} of the "
            "time.",
        )


def _compiled(seen: Seen) -> list[tuple[object, int]]:
    return [(o, n) for o, name, n in seen.calls if name == "compile" and n >= _FEW]


def _compile(seen: Seen) -> Iterator[Evidence]:
    for line, _, count in (c for c in seen.calls if c[1] == "compile"):
        traced = [o for o in seen.hot(0.0) if o.traces and o is not line]
        spent = sum(t.seconds for o in traced for t in o.traces)
        if count >= _FEW and spent:
            yield Evidence(
                lines=(line, *traced),
                share=seen.account.share(spent),
                means=f"`compile` was called {count} times. Each one throws the traced "
                f"step away: tracing it again took {units.seconds(spent)}.",
            )


def _evaluate(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        call = line.called("evaluate", "predict")
        if call and call.count >= _FEW and call.seconds / call.count >= _SHORT_S:
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time goes into {call.count} calls "
                f"of `{call.name}`, {each(call.seconds, call.count)} each.",
            )


def _rows(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        call = line.called("train_on_batch", "test_on_batch", "predict_on_batch")
        if call and call.count >= _OFTEN:
            around = seen.kind_share(line, "Python", "set-up")
            if around > _OVERHEAD:
                yield Evidence(
                    lines=(line,),
                    means=f"{call.count:,} calls of `{call.name}`, "
                    f"{each(call.seconds, call.count)} each, "
                    f"{units.percent(around)} of that outside of the network.",
                )


def _weights(seen: Seen) -> Iterator[Evidence]:
    names = ("get_weights", "set_weights", "assign", "load_weights", "count_params")
    lines = tuple(o for o in seen.account.lines if o.called(*names))
    lines = tuple(o for o in lines if o.called(*names) is o.calls[0])
    if lines and seen.share(*lines) >= WORTH:
        call = lines[0].called(*names)
        assert call is not None
        yield Evidence(
            lines=lines,
            means=f"{seen.percent(*lines)} of the time goes into copying weights, "
            f"`{call.name}` {call.count:,} times.",
        )


def _save(seen: Seen) -> Iterator[Evidence]:
    names = ("save", "save_weights", "save_model", "ModelCheckpoint", "export")
    for line in seen.hot():
        if call := line.called(*names):
            often = f" {call.count:,} times" if call.count else ""
            share = seen.account.share(call.seconds)
            yield Evidence(
                lines=(line,),
                share=share,
                means=f"{units.percent(share)} of the time goes into `{call.name}`"
                f"{often}.",
            )


def _callback(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        for part in line.parts:
            kind, _, name = part.partition(" ")
            call = line.called(name) if kind == "callback" else None
            share = seen.account.share(call.seconds) if call else 0.0
            if share >= WORTH and name != "ModelCheckpoint":
                yield Evidence(
                    lines=(line,),
                    share=share,
                    means=f"{units.percent(share)} of the time goes into `{name}`.",
                )


def _retraced(seen: Seen) -> Iterator[Evidence]:
    for line in seen.account.lines:
        spent = sum(one.seconds for one in line.traces)
        if not spent or seen.account.share(spent) < WORTH or _compiled(seen):
            continue
        if line.called("fit", "predict", "evaluate"):
            continue
        one = line.traces[0]
        yield Evidence(
            lines=(line,),
            means=f"`{one.name}` was traced {one.count} times, "
            f"{each(one.seconds, one.count)} each: "
            f"{units.percent(seen.account.share(spent))} of the time.",
        )


def _models(seen: Seen) -> Iterator[Evidence]:
    for line in seen.hot():
        call = line.called("__call__")
        if call and call.count >= _OFTEN and line.eager_s > line.total_s / 4:
            yield Evidence(
                lines=(line,),
                means=f"{seen.percent(line)} of the time goes into {call.count:,} "
                "calls whose operations Python starts one by one.",
            )


CAUSES = (
    Cause(
        id="predict-per-row",
        applies=_predict,
        do="Call the model, not `predict`, for few rows at a time",
        fix="`model(rows, training=False)` for a few rows, or one `predict_on_batch` "
        "for all rows of the turn at once",
        mind="`model(...)` returns a tensor: `.numpy()` makes an array of it.",
    ),
    Cause(
        id="compile-in-loop",
        applies=_compile,
        do="Compile once, before the loop",
        fix="Move `model.compile(...)` out of the loop; for a new rate set "
        "`model.optimizer.learning_rate = ...`",
        mind="A new `compile` also resets the optimizer: reset it yourself if you "
        "want that.",
    ),
    Cause(
        id="fit-in-loop",
        applies=_fit,
        do="Call `fit` once, for all the data",
        fix="One `fit` over a `tf.data.Dataset` (`from_generator`) that goes through "
        "the parts; `train_on_batch` where each part is one batch",
        mind="`fit` does not shuffle a dataset: shuffle the rows within each part.",
    ),
    Cause(
        id="evaluated-often",
        applies=_evaluate,
        do="Evaluate less often, or on fewer examples",
        fix="Every few epochs, or `validation_data=` with `validation_freq=`",
    ),
    Cause(
        id="small-batches-by-hand",
        applies=_rows,
        do="Hand more rows to each call",
        fix="Collect rows, then one `train_on_batch` for all of them",
        mind="Fewer, larger updates learn differently: tune the learning rate.",
    ),
    Cause(
        id="weights-copied",
        applies=_weights,
        do="Copy weights less often, or within the graph",
        fix="`for a, b in zip(target.variables, model.variables): a.assign(b)` in one "
        "`tf.function`, every few hundred steps",
    ),
    Cause(
        id="saved-often",
        applies=_save,
        do="Save less often",
        fix='`ModelCheckpoint(..., save_freq="epoch", save_weights_only=True)`, or '
        "every few epochs",
        group="without observers",
        swap="callback",
    ),
    Cause(
        id="callback",
        applies=_callback,
        do="Let the callback at {where} do less",
        fix="Every hundredth step, or at the end of an epoch",
        group="without observers",
        swap="callback",
    ),
    Cause(
        id="traced-again",
        applies=_retraced,
        do="Let the function called at {where} be traced once",
        fix="Make the `tf.function` once, outside of the loop; hand it tensors, not "
        "numbers; `reduce_retracing=True` where shapes differ",
        swap="retracing",
    ),
    Cause(
        id="model-called-eagerly",
        applies=_models,
        do="Put the call at {where} under `tf.function`",
        fix="`@tf.function` on the function around it",
        mind="What it prints or counts in Python then happens once.",
        swap="eager",
    ),
)
