"""Arguments and settings whose values are often left over, or are a mistake."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import called, dotted, keyword

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

_EAGER = (
    "run_eagerly=True runs each step uncompiled, and is for finding mistakes; leave it "
    "out."
)
# Switches that slow every operation, with what each is for.
_SLOW = {
    "run_functions_eagerly": "runs every tf.function uncompiled; it is for debugging",
    "enable_debug_mode": "runs pipelines eagerly, one at a time; it is for debugging",
    "enable_check_numerics": "checks the result of every operation for NaN",
    "enable_dump_debug_info": "writes what every operation computed to files",
    "set_log_device_placement": "writes a line for every operation",
    "enable_op_determinism": "makes operations repeatable, and slower ones be chosen",
}
# Each holds TensorFlow to so many threads, whatever the machine has.
_THREADS = {
    *("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
}
_OFF = "; take it out when that is not needed."
_THRESHOLDS, _SAVED_EVERY, _BUFFER = 1000, 100, 16384
# Without these a recurrent layer has no kernel of cuDNN.
_CUDNN = {"activation": "tanh", "recurrent_activation": "sigmoid"}
_WIDE = {"set_floatx", "set_dtype_policy", "set_global_policy"}


def hinted(code: Code) -> Iterator[Hinted]:
    """Each such argument, where its value stands."""
    for call in code.calls:
        for option in call.keywords:
            yield from _option(code, call, option)
        yield from _switch(call)
        if called(call) == "TFRecordDataset":
            yield from _small_buffer(code, call)
        if called(call) in ("LSTM", "GRU"):
            yield from _without_cudnn(code, call)
        if called(call) in _THREADS and call.args and code.number(call.args[0]) == 1:
            yield call, _one_thread(called(call))
    for node in code.nodes:
        if isinstance(node, ast.Assign):
            yield from _one_for_all(code, node)
        if isinstance(node, ast.Assign) and _is_true(node.value):
            named = (called(target) == "run_eagerly" for target in node.targets)
            yield from ((node, _EAGER) for one in named if one)


def _option(code: Code, call: ast.Call, option: ast.keyword) -> Iterator[Hinted]:
    name, value = option.arg, option.value
    number = code.number(value)
    if name == "run_eagerly" and _is_true(value):
        yield value, _EAGER
    if name == "histogram_freq" and number and called(call) == "TensorBoard":
        says = (
            "histogram_freq writes a histogram of every weight in each such epoch; "
            "leave it out, or give it a large number."
        )
        yield value, says
    if name == "save_freq" and number in range(1, _SAVED_EVERY):
        says = (
            f"save_freq={number:g} saves the model every so many batches, and training "
            'waits for it; save_freq="epoch" saves it once an epoch.'
        )
        yield value, says
    if name == "num_thresholds" and number is not None and number >= _THRESHOLDS:
        says = (
            f"This metric counts each batch against {number:g} thresholds; its default "
            "of 200 is enough to watch a training."
        )
        yield value, says
    if name == "reduce_retracing" and _is_false(value) and _has_open_shape(code):
        says = (
            "A shape here is open, and with reduce_retracing=False each new length is "
            "traced anew; write reduce_retracing=True, or pad to a few lengths."
        )
        yield value, says


def _switch(call: ast.Call) -> Iterator[Hinted]:
    name, whole = called(call), dotted(call.func)
    on = call.args[0] if call.args else keyword(call, "enabled")
    # What such a call is given says how, not whether.
    sure = on is None or _is_true(on) or name.startswith("enable_")
    if name in _SLOW and "." in whole and sure:
        yield call, f"{name} {_SLOW[name]}{_OFF}"
    if name in _WIDE and "float64" in ast.unparse(call):
        says = (
            "float64 doubles the bytes of everything and is slow on most GPUs; float32 "
            "is what layers are made for."
        )
        yield call, says


def _one_for_all(code: Code, node: ast.Assign) -> Iterator[Hinted]:
    """One thread, told by a variable or by an option of a pipeline."""
    found = code.constant(node.value)
    for target in node.targets:
        if called(target) == "private_threadpool_size" and code.number(node.value) == 1:
            yield node, _one_thread("private_threadpool_size")
        if isinstance(target, ast.Subscript) and found and found.value == "1":
            name = getattr(target.slice, "value", None)
            if name in _THREADS:
                yield node, _one_thread(str(name))


def _one_thread(name: str) -> str:
    return f"{name} of 1 leaves all cores but one without work; leave it out."


def _small_buffer(code: Code, call: ast.Call) -> Iterator[Hinted]:
    given = keyword(call, "buffer_size")
    size, found = code.number(given), code.constant(given)
    if size is not None and found and size < _BUFFER:
        says = (
            f"A buffer of {size:g} bytes takes a call of the system for every few "
            "records; leave buffer_size out, or give it a megabyte."
        )
        yield found, says


def _without_cudnn(code: Code, call: ast.Call) -> Iterator[Hinted]:
    for option in call.keywords:
        value = code.constant(option.value)
        if not value or option.arg is None:
            continue
        other = option.arg in _CUDNN and value.value != _CUDNN[option.arg]
        dropped = option.arg == "recurrent_dropout" and bool(value.value)
        unrolled = option.arg == "unroll" and value.value is True
        if other or dropped or unrolled:
            says = (
                f"With {option.arg}={value.value!r} a GPU runs {called(call)} step by "
                "step, not in cuDNN's one kernel; leave it at its default if you can."
            )
            yield value, says


def _has_open_shape(code: Code) -> bool:
    """Whether a dataset is said to hold shapes with an open side."""
    for call in code.calls:
        if called(call) == "TensorSpec" and call.args:
            sides = getattr(call.args[0], "elts", [])
            if any(_is_none(side) for side in sides[1:]):
                return True
    return any(called(call) == "padded_batch" for call in code.calls)


def _is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
