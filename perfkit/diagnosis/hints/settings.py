"""What is set after it was read: environment variables and devices."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.hints.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

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


def hinted(code: Code) -> Iterator[Hinted]:
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
