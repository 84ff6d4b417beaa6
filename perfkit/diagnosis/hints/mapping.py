"""What the functions do that a pipeline maps over its examples."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.code import SOURCES
from perfkit.diagnosis.hints.names import Function, called, dotted, keyword
from perfkit.diagnosis.hints.stages import switched_off

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted
    from perfkit.diagnosis.hints.names import Chain


PYTHON = {"py_function", "numpy_function"}
_DATASETS = ("PyDataset", "Sequence")
_REPEATS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
# What reads a file for each item.
_READS = {"open", "imread", "load_img", "read_bytes", "read_text", "load", "loadtxt"}


def python_input(code: Code) -> Iterator[Hinted]:
    """What runs Python where TensorFlow could work by itself."""
    for call in code.calls:
        if called(call) in PYTHON and dotted(call.func).startswith(("tf.", "tensorf")):
            says = (
                f"{called(call)} runs Python for each element, one at a time, however "
                "many calls are parallel; write it with operations of TensorFlow."
            )
            yield call, says
        if called(call) == "from_generator" and _works(code, call):
            says = (
                "This generator works in Python for each example, one at a time; yield "
                "what is cheap to find, and map the work in TensorFlow."
            )
            yield call, says
    for call, chain in code.chains.listed.items():
        if not {"take", "?"} & {one.name for one in chain}:
            says = (
                "list() makes the whole dataset at once and keeps it in memory; loop "
                "over it, or take() a few; cardinality() tells its length."
            )
            yield call, says
    for one in code.classes:
        yield from _dataset(code, one)


def _works(code: Code, call: ast.Call) -> bool:
    """Whether a generator does more than hand over what there is."""
    function = code.resolve(keyword(call, "generator", 0))
    if not isinstance(function, Function):
        return False
    loops = [one for one in ast.walk(function) if isinstance(one, ast.For | ast.While)]
    return any(_computes(part) for loop in loops for part in loop.body)


def _computes(part: ast.AST) -> bool:
    return isinstance(part, ast.For) or any(
        isinstance(one, ast.Call) for one in ast.walk(part)
    )


def _dataset(code: Code, one: ast.ClassDef) -> Iterator[Hinted]:
    if not any(called(base) in _DATASETS for base in one.bases):
        return
    item = next((f for f in one.body if getattr(f, "name", "") == "__getitem__"), None)
    workers = any(k.arg == "workers" for call in code.calls for k in call.keywords)
    made = [c for c in code.calls if called(c) == one.name]
    hidden = any(k.arg is None for call in made for k in call.keywords)
    if item and not workers and not hidden and _is_dear(item):
        says = (
            "This dataset works in Python for each batch, in one worker; do the work "
            "for all rows beforehand, or give super().__init__() more workers."
        )
        yield one, says


def _is_dear(item: ast.AST) -> bool:
    return any(
        isinstance(node, _REPEATS)
        or (isinstance(node, ast.Call) and called(node) in _READS)
        for node in ast.walk(item)
    )


_DECODES = {
    *("decode_jpeg", "decode_png", "decode_image", "decode_bmp", "decode_gif"),
    *("decode_and_crop_jpeg", "decode_wav", "decode_compressed"),
}
# Each draws one number for whatever it is given, batch or image; seen in 2.21.
_ONE_DRAW = {
    *("random_brightness", "random_contrast", "random_hue", "random_saturation"),
}
# What does the same to a batch as to each of its examples.
_EACH_BY_ITSELF = {"cast", "one_hot", "convert_image_dtype", "to_float"}
_DRAWS = {"normal", "uniform", "truncated_normal", "shuffle", "categorical", "gamma"}
_PARALLEL = ("apply_default_optimizations", "map_parallelization")
_NUMPY = ("np.", "numpy.", "random.")
_PYTHON_DRAWS = ("np.random.", "numpy.random.", "random.")
_KEEPS = {"cache", "snapshot", "save", "?", *PYTHON}
_BATCHED = {"batch", "padded_batch", "ragged_batch"}
_PLAIN = (
    *(ast.Return, ast.Assign, ast.Import, ast.alias, ast.Name, ast.Constant),
    *(ast.Tuple, ast.BinOp, ast.operator, ast.expr_context, ast.Call, ast.keyword),
    *(ast.Attribute, ast.UnaryOp, ast.unaryop),
)


def mapped(code: Code) -> Iterator[Hinted]:
    """What each mapped function does at that place of its pipeline."""
    for chain in code.chains.made:
        for place, stage in enumerate(chain):
            if stage.name == "map" and stage.call:
                names = [one.name for one in chain[place + 1 :]]
                yield from _map(code, stage.call, chain[:place], names)
    for chain in code.chains.trained:
        if chain[0].name in SOURCES and not _KEEPS & {one.name for one in chain}:
            yield from _decoded_anew(code, chain)


def _map(
    code: Code, call: ast.Call, before: Chain, after: list[str]
) -> Iterator[Hinted]:
    calls = keyword(call, "num_parallel_calls", 1)
    function = keyword(call, "map_func", 0)
    random = _random(code, function)
    if code.number(calls) == 1:
        says = (
            "num_parallel_calls=1 works on one element at a time; tf.data.AUTOTUNE "
            "takes as many as pay."
        )
        yield calls or call, says
    elif calls is None and not _hides(call):
        why = _serial(code, function, random, after)
        if why:
            says = f"{why}; give this map num_parallel_calls=tf.data.AUTOTUNE."
            yield call, says
    if random and "cache" in after and "unbatch" not in after:
        says = (
            f"{random} before cache is drawn once: each epoch sees the same examples; "
            "cache first, then augment."
        )
        yield call, says
    drawn = _drawn_once(code, function)
    if drawn:
        says = (
            f"{dotted(drawn.func)} in a map draws once, when the function is traced, "
            "and every example gets the same; draw with tf.random."
        )
        yield drawn, says
    yield from _batches(code, function, call, before, after)


def _serial(code: Code, function: ast.AST | None, random: str, after: list[str]) -> str:
    """Why TensorFlow does not make a map parallel by itself; "" where it does."""
    off, once = switched_off(code, _PARALLEL), "works on one element at a time"
    if off:
        return f"With {off} off, a map {once}"
    if random:
        return f"A map with {random} {once}"
    if after[:1] == ["batch"] and not _each_by_itself(code, function):
        return f"TensorFlow makes one stage of a map and its batch, which {once}"
    return ""


def _batches(
    code: Code,
    function: ast.AST | None,
    call: ast.Call,
    before: Chain,
    after: list[str],
) -> Iterator[Hinted]:
    stages = {one.name for one in before}
    once = next((n for n in _names(code, function) if n in _ONE_DRAW), "")
    if once and "batch" in stages and "unbatch" not in stages:
        says = (
            f"{once} after batch draws one number for the whole batch; map it before "
            "batch, or use a layer, which draws for each image."
        )
        yield call, says
    if (
        after[:1] == ["batch"]
        and not stages & _BATCHED
        and _each_by_itself(code, function)
    ):
        says = (
            "This function does the same to a batch at once, and is called for each "
            "example; batch first, then map."
        )
        yield call, says


def _decoded_anew(code: Code, chain: Chain) -> Iterator[Hinted]:
    for stage in chain:
        if stage.name != "map" or not stage.call:
            continue
        function = keyword(stage.call, "map_func", 0)
        decodes = next((n for n in _names(code, function) if n in _DECODES), "")
        if decodes and not _random(code, function):
            says = (
                f"{decodes} runs for each example again in each epoch; where what it "
                "makes fits in memory, write .cache() after this map."
            )
            yield stage.call, says


def _hides(call: ast.Call) -> bool:
    return any(one.arg is None for one in call.keywords)


def _random(code: Code, function: ast.AST | None) -> str:
    """What a function draws anew for each element; "" where nothing is seen."""
    for call in _inside(code, function):
        name, whole = called(call), dotted(call.func)
        if name.startswith("random_") and not whole.startswith(_NUMPY):
            return name
        if whole.startswith("tf.random.") and name in _DRAWS:
            return whole
    layers = code.resolve(function)
    made = [*ast.walk(layers)] if isinstance(layers, ast.Call) else []
    drawn = (called(one) for one in made if isinstance(one, ast.Call))
    return next((name for name in drawn if _is_random_layer(name)), "")


def _drawn_once(code: Code, function: ast.AST | None) -> ast.Call | None:
    """What Python draws in a function that is traced, and not run again."""
    calls = list(_inside(code, function))
    if PYTHON & {called(call) for call in calls}:
        return None
    drawn = (call for call in calls if dotted(call.func).startswith(_PYTHON_DRAWS))
    return next(drawn, None)


def _is_random_layer(name: str) -> bool:
    return name.startswith("Random") and name[6:7].isupper() and "Normal" not in name


def _names(code: Code, function: ast.AST | None) -> list[str]:
    return [called(call) for call in _inside(code, function)]


def _inside(code: Code, node: ast.AST | None) -> Iterator[ast.Call]:
    """The calls in a function and in those of the same file that it calls."""
    waiting, seen = [code.resolve(node)], set()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, Function) or function in seen:
            continue
        seen.add(function)
        for call in (one for one in ast.walk(function) if isinstance(one, ast.Call)):
            yield call
            waiting += [code.resolve(call.func)]


def _each_by_itself(code: Code, node: ast.AST | None) -> bool:
    """Whether a function only casts, scales and encodes what it is given."""
    function = code.resolve(node)
    if not isinstance(function, Function):
        return False
    body = function.body if isinstance(function.body, list) else [function.body]
    seen = [one for part in body for one in ast.walk(part)]
    calls = [one for one in seen if isinstance(one, ast.Call)]
    works = any(isinstance(one, ast.BinOp | ast.Call) for one in seen)
    plain = all(isinstance(one, _PLAIN) for one in seen)
    return works and plain and all(called(one) in _EACH_BY_ITSELF for one in calls)
