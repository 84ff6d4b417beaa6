"""Arguments and settings whose values are often left over, or are a mistake."""

import ast
from collections.abc import Iterator

from perfkit.diagnosis.hints.code import Code, Hinted
from perfkit.diagnosis.source import (
    Import,
    called,
    dotted,
    is_literal,
    keyword,
    values_of,
)

_SAYS = {
    "eager": "run_eagerly=True runs each step uncompiled, and is for finding mistakes; "
    "leave it out.",
    "histograms": "histogram_freq writes a histogram of every weight in each such "
    "epoch; leave it out, or give it a large number.",
    "saves": "save_freq={:g} saves the model every so many batches, and training waits "
    'for it; save_freq="epoch" saves it once an epoch.',
    "thresholds": "This metric counts each batch against {:g} thresholds; its default "
    "of 200 is enough to watch a training.",
    "open shape": "A shape here is open, and with reduce_retracing=False each new "
    "length is traced anew; write reduce_retracing=True, or pad to a few lengths.",
    "slow": "{} {}; take it out when that is not needed.",
    "float64": "float64 doubles the bytes of everything and is slow on most GPUs; "
    "float32 is what layers are made for.",
    "one thread": "{} of 1 leaves all cores but one without work; leave it out.",
    "buffer": "A buffer of {:g} bytes takes a call of the system for every few "
    "records; leave buffer_size out, or give it a megabyte.",
    "cudnn": "With {}={!r} a GPU runs {} step by step, not in cuDNN's one kernel; "
    "leave it at its default if you can.",
    "import": "{} read {} when it was imported; set it above the import.",
    "first use": "TensorFlow reads {} once, when it first needs it; set it above the "
    "import, where nothing can have come before.",
    "numpy": "NumPy's library read {} when imported; set it above the import.",
    "devices": "{} is refused once the devices have been used, as they are above; call "
    "it right after the import.",
    "growth": "allow_growth belongs to a session of TensorFlow 1, and none is made "
    "here; write tf.config.experimental.set_memory_growth(gpu, True).",
    "batch": "After each batch this {}; {}.",
}
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
_THRESHOLDS, _SAVED_EVERY, _BUFFER = 1000, 100, 16384
# Without these a recurrent layer has no kernel of cuDNN.
_CUDNN = {"activation": "tanh", "recurrent_activation": "sigmoid"}
_WIDE = {"set_floatx", "set_dtype_policy", "set_global_policy"}


def options(code: Code) -> Iterator[Hinted]:
    """Each such argument, where its value stands."""
    for call in code.calls:
        for option in call.keywords:
            yield from _option(code, call, option)
        yield from _switch(code, call)
    for node, target in code.assigned:
        found, name = code.constant(node.value), called(target)
        if name == "run_eagerly" and is_literal(node.value, True):
            yield node, _SAYS["eager"]
        if name == "private_threadpool_size" and code.number(node.value) == 1:
            yield node, _SAYS["one thread"].format(name)
        if isinstance(target, ast.Subscript) and found and found.value == "1":
            variable = _text(target.slice)
            if variable in _THREADS:
                yield node, _SAYS["one thread"].format(variable)


def _option(code: Code, call: ast.Call, option: ast.keyword) -> Iterator[Hinted]:
    name, value, of = option.arg, option.value, called(call)
    number, found = code.number(value), code.constant(value)
    if name == "run_eagerly" and is_literal(value, True):
        yield value, _SAYS["eager"]
    if name == "histogram_freq" and number and of == "TensorBoard":
        yield value, _SAYS["histograms"]
    if name == "save_freq" and number in range(1, _SAVED_EVERY):
        yield value, _SAYS["saves"].format(number)
    if name == "num_thresholds" and number is not None and number >= _THRESHOLDS:
        yield value, _SAYS["thresholds"].format(number)
    if name == "reduce_retracing" and is_literal(value, False) and _is_open(code):
        yield value, _SAYS["open shape"]
    if name and found and of in ("LSTM", "GRU"):
        other = found.value != _CUDNN.get(name, found.value)
        dropped = name == "recurrent_dropout" and bool(found.value)
        if other or dropped or (name == "unroll" and found.value is True):
            yield found, _SAYS["cudnn"].format(name, found.value, of)


def _switch(code: Code, call: ast.Call) -> Iterator[Hinted]:
    name = called(call)
    on = call.args[0] if call.args else keyword(call, "enabled")
    # What such a call is given says how, not whether.
    sure = on is None or is_literal(on, True) or name.startswith("enable_")
    if name in _SLOW and "." in dotted(call.func) and sure:
        yield call, _SAYS["slow"].format(name, _SLOW[name])
    if name in _WIDE and "float64" in ast.unparse(call):
        yield call, _SAYS["float64"]
    if name in _THREADS and call.args and code.number(on) == 1:
        yield call, _SAYS["one thread"].format(name)
    if name == "TFRecordDataset":
        given = keyword(call, "buffer_size")
        size, found = code.number(given), code.constant(given)
        if size is not None and found and size < _BUFFER:
            yield found, _SAYS["buffer"].format(size)


def _is_open(code: Code) -> bool:
    """Whether a dataset is said to hold shapes with an open side."""
    specs = [call for call in code.named("TensorSpec") if call.args]
    sides = [side for one in specs for side in getattr(one.args[0], "elts", [])[1:]]
    return any(is_literal(one, None) for one in sides) or any(
        code.named("padded_batch")
    )


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
# What starts a process, which reads the variables anew.
_LATER = ("Popen", "Process", "check_call", "check_output", "system")
_ENVIRON = ("os.environ", "environ")
_DEVICES = (
    *("set_visible_devices", "set_memory_growth", "set_logical_device_configuration"),
    *("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"),
)
# What starts the devices, whatever stands in the call.
_STARTS = {
    *("tf.constant", "tf.Variable", "tf.zeros", "tf.ones", "tf.random.normal"),
    *("tf.random.uniform", "tf.matmul", "tf.data.Dataset.from_tensor_slices"),
    *("tf.config.list_logical_devices", "tf.test.gpu_device_name"),
    "tf.test.is_gpu_available",
}
_SESSIONS = ("Session", "InteractiveSession", "set_session")


def settings(code: Code) -> Iterator[Hinted]:
    """Variables set after an import, and devices set after their first use."""
    imports = [
        node
        for node in code.nodes
        if isinstance(node, Import) and not code.guarded(node)
    ]
    others = [
        *code.named(*_LATER),
        *(call for call in code.named("run") if "subprocess" in dotted(call.func)),
    ]
    for node, name in _variables(code):
        earlier = (one for one in imports if _earlier(code, one, node))
        why = _late(name, set[str]().union(*map(_roots, earlier)))
        if why and not any(_earlier(code, node, call) for call in others):
            yield node, why
    starts = [one for one in code.calls if _starts(one) and not code.guarded(one)]
    for call in code.named(*_DEVICES):
        if any(_earlier(code, start, call) for start in starts):
            yield call, _SAYS["devices"].format(called(call))
    for node, target in code.assigned:
        growth = dotted(target).endswith("gpu_options.allow_growth")
        if growth and not any(code.named(*_SESSIONS)):
            yield node, _SAYS["growth"]


def _late(name: str, imported: set[str]) -> str:
    """Why a variable is set too late once something was imported; "" if it is not."""
    if name == "KERAS_BACKEND" and "keras" in imported:
        return _SAYS["import"].format("Keras", name)
    if name.startswith(_IMPORTED) and imported & _TENSORFLOW:
        return _SAYS["import"].format("TensorFlow", name)
    if name.startswith(_FIRST_USE) and name != _EACH and imported & _TENSORFLOW:
        return _SAYS["first use"].format(name)
    if name.startswith(_NUMPY) and imported & {"numpy", *_TENSORFLOW}:
        return _SAYS["numpy"].format(name)
    return ""


def _variables(code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Each place that sets an environment variable, with its name."""
    for node, target in code.assigned:
        if isinstance(target, ast.Subscript) and dotted(target.value) in _ENVIRON:
            yield node, _text(target.slice)
    for call in code.calls:
        name, whole = called(call), dotted(call.func)
        if name == "putenv" or whole in [f"{of}.setdefault" for of in _ENVIRON]:
            yield from ((call, _text(one)) for one in call.args[:1])
        if whole in [f"{of}.update" for of in _ENVIRON]:
            dicts = (one for one in call.args if isinstance(one, ast.Dict))
            keys = (_text(key) for given in dicts for key in given.keys if key)
            yield from ((call, one.arg) for one in call.keywords if one.arg)
            yield from ((call, key) for key in keys)
        # What `%env NAME=value` of a notebook is turned into.
        if name == "run_line_magic":
            magic, *line = (*map(_text, call.args[:2]), "")
            if magic in ("env", "set_env"):
                yield call, line[0].split("=")[0].strip()


def _text(node: ast.AST) -> str:
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else ""


def _roots(node: ast.Import | ast.ImportFrom) -> set[str]:
    """What an import loads, by the first word; Keras also through TensorFlow."""
    of = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
    words = [f"{of}{one.name}" for one in node.names]
    keras = any(word.startswith("tensorflow.keras") for word in words)
    return {word.split(".")[0] for word in words} | ({"keras"} if keras else set())


def _earlier(code: Code, one: ast.AST, node: ast.AST) -> bool:
    """Whether one thing is sure to have run before another."""
    where = code.names.function_of(one)
    lines = [getattr(each, "lineno", 0) for each in (one, node)]
    return lines[0] < lines[1] and where in (None, code.names.function_of(node))


def _starts(call: ast.Call) -> bool:
    name = dotted(call.func).replace("tensorflow.", "tf.", 1)
    # A scaler, which is fitted to one thing, uses no device.
    fits = name.endswith(".fit") and len(values_of(call)) > 1
    return name in _STARTS or fits


_PER_BATCH = (
    *("on_train_batch_end", "on_train_batch_begin", "on_batch_end", "on_batch_begin"),
)
# What each does there, and what to do instead.
_EXPENSIVE = {
    "print": ("prints a line, which waits for the loss", "print every hundredth"),
    "get_weights": ("copies all weights", "look at every hundredth"),
    "evaluate": ("evaluates the model", "use validation_data"),
    "predict": ("predicts, with a loop of its own", "do so once an epoch"),
    "save": ("saves the model", "save once an epoch"),
    "save_weights": ("saves the weights", "save once an epoch"),
}


def is_per_batch(code: Code, node: ast.AST) -> bool:
    """Whether a node stands in what a callback does at each batch."""
    return getattr(code.names.function_of(node), "name", "") in _PER_BATCH


def callbacks(code: Code) -> Iterator[Hinted]:
    """What is expensive and done at every batch, without a condition."""
    for call in code.named(*_EXPENSIVE):
        name, on = called(call), dotted(call.func)
        costly = on == "print" if name == "print" else "model" in on
        if costly and _at_each_batch(code, call) and not code.guarded(call):
            yield call, _SAYS["batch"].format(*_EXPENSIVE[name])


def _at_each_batch(code: Code, call: ast.Call) -> bool:
    if is_per_batch(code, call):
        one = code.names.nearest(call, ast.ClassDef)
        return one is not None and any("Callback" in called(base) for base in one.bases)
    return any(
        isinstance(above, ast.keyword) and above.arg in _PER_BATCH
        for above in code.names.above(call)
    )
