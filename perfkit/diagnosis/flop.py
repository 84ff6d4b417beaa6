"""How much arithmetic is in a step: the products of matrices and the convolutions.

They are counted in the graph of the forward and the backward pass, each from its
shapes. What is small beside them (activations, the optimizer) is left out; a graph with
loops, whose rounds it does not tell, is not counted at all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# What holds work that the graph around it does not show.
_HIDDEN = ("While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall")


def flop_of(model: Any, batch: Any) -> float | None:
    """Multiplications and additions of one training step; None where nobody knows.

    Args:
        model: Compiled and built.
        batch: One that it is trained on: features and labels.
    """
    import tensorflow as tf

    if not isinstance(batch, tuple | list) or len(batch) < 2:
        return None

    def gradients(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(features, training=True)
            loss = model.compute_loss(features, labels, predicted)
        return tape.gradient(loss, model.trainable_variables)

    try:
        step = tf.function(gradients, autograph=False)
        graph = step.get_concrete_function(*batch[:2]).graph
    except (ValueError, TypeError, AttributeError, KeyError, tf.errors.OpError):
        # A model with a step of its own may be made for another.
        return None
    return of_graph(graph)


def of_graph(graph: Any) -> float | None:
    """Count the products in a graph; None where it does not show them all."""
    operations = _needed(graph)
    if any(operation.type in _HIDDEN for operation in operations):
        return None
    counted = [_COUNTED[one.type](one) for one in operations if one.type in _COUNTED]
    return float(sum(counted)) if all(math.isfinite(n) for n in counted) else None


def _needed(graph: Any) -> set[Any]:
    """What its outputs hang on: gradients that nobody asks for are never computed."""
    needed: set[Any] = set()
    open_ = [tensor.op for tensor in graph.outputs]
    while open_:
        operation = open_.pop()
        if operation not in needed:
            needed.add(operation)
            open_ += [tensor.op for tensor in operation.inputs]
    return needed


def _elements(tensor: Any) -> float:
    count = tensor.shape.num_elements()
    return math.nan if count is None else float(count)


def _inner(operation: Any, flag: str) -> float:
    axis = -2 if operation.get_attr(flag) else -1
    size = operation.inputs[0].shape[axis]
    return math.nan if size is None else float(size)


def _product(flag: str) -> Callable[[Any], float]:
    def count(operation: Any) -> float:
        return 2 * _elements(operation.outputs[0]) * _inner(operation, flag)

    return count


def _convolution(operation: Any) -> float:
    kernel = _elements(operation.inputs[1]) / operation.inputs[1].shape[-1]
    return float(2 * _elements(operation.outputs[0]) * kernel)


def _for_kernel(operation: Any) -> float:
    kernel = operation.outputs[0]
    if kernel.shape.num_elements() is None:
        return math.nan
    return (
        float(_elements(kernel) / kernel.shape[-1]) * 2 * _elements(operation.inputs[2])
    )


def _for_input(operation: Any) -> float:
    kernel = operation.inputs[1]
    return (
        float(_elements(kernel) / kernel.shape[-1]) * 2 * _elements(operation.inputs[2])
    )


def _einsum(operation: Any) -> float:
    equation = operation.get_attr("equation").decode()
    names = equation.partition("->")[0].split(",")
    if "..." in equation or len(names) != 2:
        return math.nan
    sizes = {
        name: size
        for letters, tensor in zip(names, operation.inputs, strict=True)
        for name, size in zip(letters, tensor.shape, strict=True)
    }
    return 2 * math.prod(math.nan if s is None else s for s in sizes.values())


_COUNTED: dict[str, Callable[[Any], float]] = {
    "MatMul": _product("transpose_a"),
    "BatchMatMul": _product("adj_x"),
    "BatchMatMulV2": _product("adj_x"),
    "Conv2D": _convolution,
    "Conv2DBackpropFilter": _for_kernel,
    "Conv2DBackpropInput": _for_input,
    "Einsum": _einsum,
}
