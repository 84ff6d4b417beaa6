"""Arguments and settings whose values are often left over, or are a mistake."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.hints.names import called, dotted, keyword

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def options(code: Code) -> Iterator[Hinted]:
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


# Which variables an import reads, as the calls of getenv by TensorFlow 2.21 show.
_IMPORTED = (
    *("TF_CPP_", "TF_ENABLE_ONEDNN_OPTS", "TF_USE_LEGACY_KERAS"),
    "TF_CUFFT_WORKSPACE_LIMIT",
)
_FIRST_USE = ("TF_", "XLA_", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_CACHE_")
# Read by each strategy that is made.
_EACH = "TF_CONFIG"
_NUMPY = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_TENSORFLOW = {"tensorflow", "keras"}
_LATER = {"Popen", "Process", "check_call", "check_output", "system", "run"}
_DEVICES = {
    *("set_visible_devices", "set_memory_growth", "set_logical_device_configuration"),
    *("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"),
}
# What starts the devices, whatever stands in the call.
_STARTS = {
    *("tf.constant", "tf.Variable", "tf.zeros", "tf.ones", "tf.random.normal"),
    *("tf.random.uniform", "tf.matmul", "tf.data.Dataset.from_tensor_slices"),
    *("tf.config.list_logical_devices", "tf.test.gpu_device_name"),
    "tf.test.is_gpu_available",
}
_SESSIONS = {"Session", "InteractiveSession", "set_session"}


def settings(code: Code) -> Iterator[Hinted]:
    """Variables set after an import, and devices set after their first use."""
    imports = [
        node
        for node in code.nodes
        if isinstance(node, ast.Import | ast.ImportFrom) and not code.guarded(node)
    ]
    first = _first(code, imports)
    others = [call for call in code.calls if _starts_process(call)]
    for node, name in _variables(code):
        earlier = (one for one in first if _earlier(code, one, node))
        before = set[str]().union(*map(_roots, earlier))
        why = _late(name, before)
        if why and not any(_earlier(code, node, call) for call in others):
            yield node, why
    yield from _devices(code)


def _late(name: str, imported: set[str]) -> str:
    """Why a variable is set too late once something was imported; "" if it is not."""
    if name == "KERAS_BACKEND" and "keras" in imported:
        return f"Keras read {name} when it was imported; set it above the import."
    if name.startswith(_IMPORTED) and imported & _TENSORFLOW:
        return f"TensorFlow read {name} when it was imported; set it above the import."
    if name.startswith(_FIRST_USE) and name != _EACH and imported & _TENSORFLOW:
        return (
            f"TensorFlow reads {name} once, when it first needs it; set it above the "
            "import, where nothing can have come before."
        )
    if name.startswith(_NUMPY) and imported & {"numpy", *_TENSORFLOW}:
        return f"NumPy's library read {name} when imported; set it above the import."
    return ""


def _variables(code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Each place that sets an environment variable, with its name."""
    for node in code.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_environ(target.value):
                    yield node, _text(target.slice)
        elif isinstance(node, ast.Call):
            yield from ((node, name) for name in _set_by(node))


def _set_by(call: ast.Call) -> Iterator[str]:
    name, of = called(call), getattr(call.func, "value", None)
    if name == "putenv" or (name == "setdefault" and _is_environ(of)):
        yield from map(_text, call.args[:1])
    if name == "update" and _is_environ(of):
        yield from (one.arg for one in call.keywords if one.arg)
        for given in (one for one in call.args if isinstance(one, ast.Dict)):
            yield from (_text(key) for key in given.keys if key)
    # What `%env NAME=value` of a notebook is turned into.
    if name == "run_line_magic" and list(map(_text, call.args[:1])) in (
        ["env"],
        ["set_env"],
    ):
        yield from (_text(one).split("=")[0].strip() for one in call.args[1:2])


def _is_environ(node: ast.AST | None) -> bool:
    return node is not None and dotted(node) in ("os.environ", "environ")


def _text(node: ast.AST) -> str:
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else ""


def _roots(node: ast.Import | ast.ImportFrom) -> set[str]:
    """What an import loads, by the first word; Keras also through TensorFlow."""
    if isinstance(node, ast.ImportFrom):
        words = [f"{node.module or ''}.{one.name}" for one in node.names]
    else:
        words = [one.name for one in node.names]
    found = {word.split(".")[0] for word in words}
    if any(word.startswith("tensorflow.keras") for word in words):
        found.add("keras")
    return found


def _earlier(code: Code, one: ast.AST, node: ast.AST) -> bool:
    """Whether one thing is sure to have run before another."""
    where = code.names.function_of(one)
    lines = [getattr(each, "lineno", 0) for each in (one, node)]
    return lines[0] < lines[1] and where in (None, code.names.function_of(node))


def _first(
    code: Code, nodes: Iterable[ast.Import | ast.ImportFrom]
) -> Iterable[ast.Import | ast.ImportFrom]:
    """The first import of each module in each function."""
    found: dict[tuple[ast.AST | None, frozenset[str]], Any] = {}
    for node in sorted(nodes, key=lambda one: one.lineno):
        where = code.names.function_of(node)
        found.setdefault((where, frozenset(_roots(node))), node)
    return found.values()


def _starts_process(call: ast.Call) -> bool:
    """Whether a process is started, which reads the variables anew."""
    name = called(call)
    return name in _LATER and (name != "run" or "subprocess" in dotted(call.func))


def _devices(code: Code) -> Iterator[Hinted]:
    starts = [one for one in code.calls if _starts(one) and not code.guarded(one)]
    for call in (one for one in code.calls if called(one) in _DEVICES):
        if any(_earlier(code, start, call) for start in starts):
            says = (
                f"{called(call)} is refused once the devices have been used, as they "
                "are above; call it right after the import."
            )
            yield call, says
    sessions = any(called(call) in _SESSIONS for call in code.calls)
    for node in (one for one in code.nodes if isinstance(one, ast.Assign)):
        growth = any(
            dotted(t).endswith("gpu_options.allow_growth") for t in node.targets
        )
        if growth and not sessions:
            says = (
                "allow_growth belongs to a session of TensorFlow 1, and none is made "
                "here; write tf.config.experimental.set_memory_growth(gpu, True)."
            )
            yield node, says


def _starts(call: ast.Call) -> bool:
    name = dotted(call.func).replace("tensorflow.", "tf.", 1)
    return name in _STARTS or name.endswith(".fit")


_HOOKS = {
    "on_train_batch_end",
    "on_train_batch_begin",
    "on_batch_end",
    "on_batch_begin",
}
# What each does there, and what to do instead.
_DEAR = {
    "print": ("prints a line, which waits for the loss", "print every hundredth"),
    "get_weights": ("copies all weights", "look at every hundredth"),
    "evaluate": ("evaluates the model", "use validation_data"),
    "predict": ("predicts, with a loop of its own", "do so once an epoch"),
    "save": ("saves the model", "save once an epoch"),
    "save_weights": ("saves the weights", "save once an epoch"),
}


def callbacks(code: Code) -> Iterator[Hinted]:
    """What is dear and done at every batch, without a condition."""
    for call in code.calls:
        dear = _dear(call)
        if dear and _at_each_batch(code, call) and not code.guarded(call):
            does, instead = _DEAR[dear]
            yield call, f"After each batch this {does}; {instead}."


def _dear(call: ast.Call) -> str:
    name, on = called(call), dotted(call.func)
    if name == "print":
        return name if on == "print" else ""
    return name if name in _DEAR and "model" in on else ""


def _at_each_batch(code: Code, call: ast.Call) -> bool:
    if code.is_per_batch(call):
        one = code.names.class_of(call)
        return one is not None and any("Callback" in called(base) for base in one.bases)
    return any(
        isinstance(above, ast.keyword) and above.arg in _HOOKS
        for above in code.names.above(call)
    )
