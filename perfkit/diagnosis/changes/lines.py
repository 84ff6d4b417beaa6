"""A line whose work is left out: what a fix of that line can bring at most.

What a layer gives is made at once in its place, of the same shape. It depends on a
variable that is 0 and on one number of each input, so that the layers before it keep
their backward pass and no optimizer of TensorFlow's takes anything away with it.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from perfkit.account.places import Place, Places, note_makers
from perfkit.diagnosis.change import LINE, Change, Untested
from perfkit.diagnosis.facts import Facts, open_shapes
from perfkit.diagnosis.failure import known
from perfkit.diagnosis.maker import LineNames
from perfkit.diagnosis.training import Training, name_of_metric
from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import without_line

if TYPE_CHECKING:
    from perfkit.findings.account import Account

# What of a training can be left out, as an account calls the parts of a line.
_LAYER, _LOSS, _METRIC = _PARTS = ("layer", "loss", "metric")
_MOST = 3
# What holds the line of an object, as ``LineNames.told`` has it.
_AT = "_perfkit_line"
_UNREAD = "what it makes could not be read"
_OPEN = "the shape of what its layer gives is not known before it runs"


def hot(account: "Account") -> tuple[dict[str, Any], ...]:
    """The lines of an account whose work may be left out, the most expensive first.

    Returns:
        Of each the ``"name"`` of its variant, its ``"file"``, ``"cell"`` and ``"line"``
        as in the account, and its ``"parts"``; for ``Facts.lines``.
    """
    found = (one for one in account.hot if any(map(one.is_part, _PARTS)))
    return tuple(
        {
            "name": without_line(account.training, one.file, one.line, one.cell),
            **{"file": one.file, "cell": one.cell, "line": one.line},
            "parts": [*one.parts],
        }
        for one in [*found][:_MOST]
    )


def remember(maker: Callable[[], Any]) -> None:
    """Let what Keras makes in this process from now on remember the line that did."""
    names = LineNames(maker)

    def heard(made: Any, kind: str, place: Place | None) -> None:
        if place and kind in _PARTS:
            # Keras would watch an attribute, and copies have to have it, too.
            vars(made)[_AT] = names.told(*place)

    note_makers(Places(), heard)


def seen(
    training: Training, lines: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The same lines, each with ``"why"`` it cannot be left out; "" where it can."""
    return tuple(
        {**one, "why": known(_obstacle, training, one, otherwise=_UNREAD)}
        for one in [*lines][:_MOST]
    )


def lines(facts: Facts) -> Iterator[Change | Untested]:
    """The work of each hot line is left out."""
    for one in facts.lines:
        where = str(one["name"]).removeprefix("without ")
        if one["why"]:
            yield Untested(where, one["why"])
            continue
        yield Change(
            name=one["name"],
            cause=LINE,
            kind="opportunity",
            changes=f"{_INSTEAD[_kind(one)]} ({where}).",
            fix=f"Let {where} do less.",
            apply=functools.partial(leave_out, line=one),
            ceiling=True,
        )


_INSTEAD = {
    _LAYER: "The layer gives zeros at once, and computes nothing",
    _LOSS: "The loss is the mean of what the model gives",
    _METRIC: "The metric is left out",
}


def leave_out(training: Training, *, line: Mapping[str, Any]) -> None:
    """Leave the work of a line out.

    Raises:
        BadParameterError: Nothing that was made there is part of the model.
    """
    model, kind = training.model, _kind(line)
    if kind == _LOSS:
        vars(model)["_compile_loss"] = _like(model._compile_loss, call=_mean())
    elif kind == _METRIC:
        compiled = model._compile_metrics
        kept = [m for m in compiled._user_metrics if not _is_metric_of(m, line)]
        left = _like(compiled, _user_metrics=kept, built=False) if kept else None
        vars(model)["_compile_metrics"] = left
    else:
        found = _layers(model, line)
        if not found:
            raise BadParameterError("no layer of the model is made in that line")
        for layer in found:
            vars(layer)["call"] = _stub(layer)
    training.trace_anew()


def _kind(line: Mapping[str, Any]) -> str:
    return str(line["parts"][0]).partition(" ")[0]


def _names(line: Mapping[str, Any]) -> set[str]:
    """What is called so in the graph: ``"layer dense Dense"`` is ``dense``."""
    parts = (str(part).split(" ") for part in line["parts"])
    return {name for kind, *rest in parts for name in rest[:1] if kind == _kind(line)}


def _is_of(made: Any, line: Mapping[str, Any]) -> bool:
    at = getattr(made, "__dict__", {}).get(_AT)
    return bool(at == (line["file"], line["cell"], line["line"]))


def _is_metric_of(metric: Any, line: Mapping[str, Any]) -> bool:
    return _is_of(metric, line) or name_of_metric(metric) in _names(line)


def _layers(model: Any, line: Mapping[str, Any]) -> list[Any]:
    """The outermost layers that a line made, or else calls."""
    every = model._flatten_layers(include_self=False)
    found = [layer for layer in every if _is_of(layer, line)]
    if not found:
        # It stands in a layer of the user's own, of which Keras's can be left out.
        found = [
            layer
            for layer in every
            if layer.name in _names(line)
            and type(layer).__module__.partition(".")[0] == "keras"
        ]
    inner = {id(one) for layer in found for one in _within(layer)}
    return [layer for layer in found if id(layer) not in inner]


def _within(layer: Any) -> list[Any]:
    return list(layer._flatten_layers(include_self=False))


def _obstacle(training: Training, line: Mapping[str, Any]) -> str:
    """Why the work of a line cannot be left out; "" where it can."""
    import keras

    model, kind = training.model, _kind(line)
    given: Any
    if kind == _LOSS:
        given = getattr(model._compile_loss, "_user_loss", None)
        alone = given is not None and len(keras.tree.flatten(given)) == 1
        return "" if alone else "its loss is one of several, or none of compile()"
    if kind == _METRIC:
        given = getattr(model._compile_metrics, "_user_metrics", None)
        several = len(getattr(model, "outputs", None) or [None]) > 1
        if several or any(isinstance(m, list | tuple | dict) for m in (given or [{}])):
            return "its metrics are those of several outputs"
        listed = any(_is_metric_of(metric, line) for metric in given)
        return "" if listed else "which metric of compile() it is was not found"
    return _of_layers(training, _layers(model, line), line)


def _of_layers(training: Training, found: list[Any], line: Mapping[str, Any]) -> str:
    import tensorflow as tf

    model, traced = training.model, tf.types.experimental.PolymorphicFunction
    inside = [one for layer in found for one in (layer, *_within(layer))]
    if not found:
        return "it is a part of a layer, and only a whole one can be left out"
    others = any(_AT in vars(one) and not _is_of(one, line) for one in inside)
    if others and _is_of(found[0], line):
        return "its layer holds layers that other lines make"
    ours = {id(one) for one in inside}
    weights = {id(w) for layer in found for w in layer.trainable_variables}
    if all(id(w) in weights for w in model.trainable_variables):
        return "nothing is learnt without its layer"
    around = [model, *(one for one in _within(model) if id(one) not in ours)]
    holders = [one for one in around if ours & {id(inner) for inner in _within(one)}]
    calls = [model.train_step, *(one.call for one in holders)]
    if any(isinstance(one, traced) for one in calls):
        return "its layer is called in a tf.function, which keeps what it traced"
    if open_shapes(training) and any(map(_is_open, found)):
        return _OPEN
    return ""


def _is_open(layer: Any) -> bool:
    """Whether a layer gives more of unknown size than the length of the batch."""
    import tensorflow as tf

    given: list[Any] = known(lambda: tf.nest.flatten(layer.output), otherwise=[])
    return any(None in tuple(one.shape)[1:] for one in given)


def _like(made: Any, **other: Any) -> Any:
    """The same object but for some of its attributes; Keras copies through a file."""
    copied = object.__new__(type(made))
    vars(copied).update(vars(made) | other)
    return copied


def _mean() -> Callable[..., Any]:
    """A loss that hardly computes, and that all outputs have gradients of."""
    import tensorflow as tf

    # A constant would let the first gradients be worked out beforehand.
    one = tf.Variable(1.0, trainable=False)

    def call(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        means = (
            tf.reduce_mean(tf.cast(part, tf.float32))
            for part in tf.nest.flatten(y_pred)
        )
        return one * tf.add_n([*means])

    return call


def _stub(layer: Any) -> Callable[..., Any]:
    """What gives the same as a layer in shape, and computes nothing of it."""
    import tensorflow as tf

    real, shapes = layer.call, dict[str, Any]()
    # A product with a constant that is 0 would be folded, and gradients with it.
    zero = tf.Variable(0.0, trainable=False)

    @functools.wraps(real)
    def call(*args: Any, **named: Any) -> Any:
        given = [one for one in tf.nest.flatten((args, named)) if tf.is_tensor(one)]
        key = str([(one.shape, one.dtype) for one in given])
        if key not in shapes:
            shapes[key] = _shapes(layer, lambda: real(*args, **named))
        value = tf.identity(zero)
        for one in given:
            if one.dtype.is_floating and isinstance(one, tf.Tensor):
                # A sum of all would overflow in float16.
                value += zero * tf.cast(tf.reshape(one, [-1])[0], tf.float32)
        batch = tf.shape(given[0])[0] if given[0].shape.rank else 1
        return tf.nest.map_structure(
            lambda spec: spec and _filled(spec, value, batch), shapes[key]
        )

    return call


def _shapes(layer: Any, call: Callable[[], Any]) -> Any:
    """Shapes and types of what a layer gives, from a graph that nobody runs."""
    import tensorflow as tf

    with tf.__internal__.FuncGraph("perfkit").as_default():
        specs = tf.nest.map_structure(
            lambda one: (
                tf.TensorSpec(one.shape, one.dtype) if tf.is_tensor(one) else None
            ),
            call(),
        )
    # What it added to the loss lies in that graph.
    layer._clear_losses()
    return specs


def _filled(spec: Any, value: Any, batch: Any) -> Any:
    import tensorflow as tf

    if spec.shape.rank is None or None in tuple(spec.shape)[1:]:
        raise BadParameterError(_OPEN)
    sizes = [batch if size is None else size for size in spec.shape]
    return tf.fill(sizes, tf.cast(value, spec.dtype))
