"""A line whose work is left out: what a fix of that line can bring at most.

What a layer gives is made at once in its place, of the same shape. It depends on a
variable that is 0 and on one number of each input, so that the layers before it keep
their backward pass and no optimizer of TensorFlow's takes anything away with it.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import line_in_words, without_line
from perfkit.training.account.places import Place, note_makers
from perfkit.training.diagnose.change import Candidates, Change, KnownCause, Untested
from perfkit.training.diagnose.facts import Facts, open_shapes
from perfkit.training.diagnose.failure import try_read
from perfkit.training.diagnose.maker import LineNames
from perfkit.training.diagnose.training import Training

if TYPE_CHECKING:
    from perfkit.findings.account import Account

# What of a training can be left out, as an account calls the parts of a line.
_LAYER, _LOSS = _PARTS = ("layer", "loss")
_MOST = 3
# The attribute with the line that made an object, from ``LineNames.locate``.
_AT = "_perfkit_line"
_UNREAD = "perfkit could not read what it makes"
_OPEN = "the shape of its layer's output is unknown before it runs"


def hot(account: "Account") -> tuple[dict[str, Any], ...]:
    """The lines of an account whose work may be left out, the most expensive first.

    Returns:
        Of each the ``"name"`` of its variant, ``"where"``: the line in words, its
        ``"file"``, ``"cell"`` and ``"line"`` as in the account, and its ``"parts"``;
        for ``Facts.lines``.
    """
    eligible = (line for line in account.hot if any(map(line.is_part, _PARTS)))
    return tuple(
        {
            "name": without_line(account.training, line.file, line.line, line.cell),
            "where": line_in_words(account.training, line.file, line.line, line.cell),
            **{"file": line.file, "cell": line.cell, "line": line.line},
            "parts": [*line.parts],
        }
        for line in [*eligible][:_MOST]
    )


def remember(maker: Callable[[], Any]) -> None:
    """Note the line that makes each part of a model of Keras in this process."""
    names = LineNames(maker)

    def keep_line(part: Any, kind: str, place: Place | None) -> None:
        if place and kind in _PARTS:
            # Past setattr, because Keras would track the attribute; copies keep it.
            vars(part)[_AT] = names.locate(*place)

    note_makers(keep_line)


def with_obstacles(
    training: Training, lines: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Add to each line ``"why"`` it cannot be left out; "" where it can."""
    return tuple(
        {**line, "why": try_read(_obstacle, training, line, otherwise=_UNREAD)}
        for line in [*lines][:_MOST]
    )


def lines(facts: Facts) -> Candidates:
    """Leave out the work of each hot line."""
    for line in facts.lines:
        where = str(line["where"])
        if line["why"]:
            yield Untested(line["why"], where)
        else:
            yield Change(
                name=line["name"],
                changes=f"{_INSTEAD[_kind(line)]} ({where}).",
                fix=f"Let {where} do less.",
                apply=functools.partial(leave_out, line=line),
                ceiling=True,
                leaves_out=where,
            )


_INSTEAD = {
    _LAYER: "The layer returns zeros and computes nothing",
    _LOSS: "The loss is the mean of the model's output",
}


def leave_out(training: Training, *, line: Mapping[str, Any]) -> None:
    """Leave the work of a line out, which has to make a part of the model."""
    model = training.model
    if _kind(line) == _LOSS:
        # Keras would copy it through a file.
        loss = object.__new__(type(model._compile_loss))
        vars(loss).update(vars(model._compile_loss) | {"call": _mean()})
        vars(model)["_compile_loss"] = loss
    else:
        layers = _layers(model, line)
        if not layers:
            raise BadParameterError("that line makes no layer of the model")
        for layer in layers:
            vars(layer)["call"] = _stub(layer)
    training.trace_anew()


def _kind(line: Mapping[str, Any]) -> str:
    return str(line["parts"][0]).partition(" ")[0]


def _is_of(part: Any, line: Mapping[str, Any]) -> bool:
    at = getattr(part, "__dict__", {}).get(_AT)
    return bool(at == (line["file"], line["cell"], line["line"]))


def _layers(model: Any, line: Mapping[str, Any]) -> list[Any]:
    """Return the outermost layers that a line made, or else those that it calls."""
    layers = model._flatten_layers(include_self=False)
    matches = [layer for layer in layers if _is_of(layer, line)]
    if not matches:
        # The line is in a layer of the user's own, whose inner layers of Keras can go.
        # The name in the graph is ``dense`` of ``"layer dense Dense"``.
        parts = (str(part).split(" ") for part in line["parts"])
        names = {words[1] for words in parts if words[0] == _LAYER and words[1:]}
        matches = [
            layer
            for layer in layers
            if layer.name in names
            and type(layer).__module__.partition(".")[0] == "keras"
        ]
    inner = {id(child) for layer in matches for child in _within(layer)}
    return [layer for layer in matches if id(layer) not in inner]


def _within(layer: Any) -> list[Any]:
    return list(layer._flatten_layers(include_self=False))


def _obstacle(training: Training, line: Mapping[str, Any]) -> str:
    """Why the work of a line cannot be left out; "" where it can."""
    import keras
    import tensorflow as tf

    model, traced = training.model, tf.types.experimental.PolymorphicFunction
    if _kind(line) == _LOSS:
        loss: Any = getattr(model._compile_loss, "_user_loss", None)
        alone = loss is not None and len(keras.tree.flatten(loss)) == 1
        return "" if alone else "its loss is one of several, or not in compile()"
    layers = _layers(model, line)
    inside = [child for layer in layers for child in (layer, *_within(layer))]
    if not layers:
        return "it makes a part of a layer, and only a whole layer can be left out"
    is_shared = any(_AT in vars(layer) and not _is_of(layer, line) for layer in inside)
    if is_shared and _is_of(layers[0], line):
        return "its layer contains layers from other lines"
    ours = {id(layer) for layer in inside}
    weights = {id(w) for layer in layers for w in layer.trainable_variables}
    if all(id(w) in weights for w in model.trainable_variables):
        return "without its layer the model learns nothing"
    around = [model, *(layer for layer in _within(model) if id(layer) not in ours)]
    holders = [part for part in around if ours & {id(inner) for inner in _within(part)}]
    calls = [model.train_step, *(holder.call for holder in holders)]
    if any(isinstance(call, traced) for call in calls):
        return "a tf.function calls its layer and keeps the old trace"
    if open_shapes(training) and any(map(_is_open, layers)):
        return _OPEN
    return ""


def _is_open(layer: Any) -> bool:
    """Whether an output of a layer has an unknown size besides the batch."""
    import tensorflow as tf

    outputs: list[Any] = try_read(lambda: tf.nest.flatten(layer.output), otherwise=[])
    return any(None in tuple(output.shape)[1:] for output in outputs)


def _mean() -> Callable[..., Any]:
    """Return a loss that computes little and gives every output a gradient."""
    import tensorflow as tf

    # A variable, because TensorFlow would fold a constant into the gradients.
    factor = tf.Variable(1.0, trainable=False)

    def call(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        means = (
            tf.reduce_mean(tf.cast(part, tf.float32))
            for part in tf.nest.flatten(y_pred)
        )
        return factor * tf.add_n([*means])

    return call


def _stub(layer: Any) -> Callable[..., Any]:
    """Return a call that gives zeros in the shapes of a layer's outputs."""
    import tensorflow as tf

    real, shapes = layer.call, dict[str, Any]()
    # A variable, because TensorFlow would fold a product with a constant 0.
    zero = tf.Variable(0.0, trainable=False)

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for t in tf.nest.flatten((args, kwargs)) if tf.is_tensor(t)]
        key = str([(t.shape, t.dtype) for t in tensors])
        if key not in shapes:
            shapes[key] = _shapes(layer, lambda: real(*args, **kwargs))
        value = tf.identity(zero)
        for tensor in tensors:
            if tensor.dtype.is_floating and isinstance(tensor, tf.Tensor):
                # One number is enough; a sum of all would overflow in float16.
                value += zero * tf.cast(tf.reshape(tensor, [-1])[0], tf.float32)
        batch = tf.shape(tensors[0])[0] if tensors[0].shape.rank else 1

        def filled(spec: Any) -> Any:
            if spec is None:
                return None
            if spec.shape.rank is None or None in tuple(spec.shape)[1:]:
                raise BadParameterError(_OPEN)
            sizes = [batch if size is None else size for size in spec.shape]
            return tf.fill(sizes, tf.cast(value, spec.dtype))

        return tf.nest.map_structure(filled, shapes[key])

    return call


def _shapes(layer: Any, call: Callable[[], Any]) -> Any:
    """Return shapes and types of a layer's outputs, from a graph that never runs."""
    import tensorflow as tf

    with tf.__internal__.FuncGraph("perfkit").as_default():
        specs = tf.nest.map_structure(
            lambda part: (
                tf.TensorSpec(part.shape, part.dtype) if tf.is_tensor(part) else None
            ),
            call(),
        )
    # The losses that it added belong to that graph.
    layer._clear_losses()
    return specs


# What leaves the work of a line out proves no cause: it shows what a fix can bring.
LINE = KnownCause(
    id="line",
    kind="opportunity",
    do="Let a line do less",
    means="a line costs time",
    offer=lines,
)
