"""What the functions do that a pipeline maps over its examples."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.chains import SOURCES
from perfkit.diagnosis.hints.stages import names_of, switched_off
from perfkit.diagnosis.names import (
    Function,
    called,
    calls_in,
    dotted,
    hides,
    is_dataset,
    keyword,
    of_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.hints.code import Code, Hinted

_SAYS = {
    "python": "{} runs Python for each element, one at a time, however many calls are "
    "parallel; write it with operations of TensorFlow.",
    "generator": "This generator works in Python for each example, one at a time; "
    "yield what is cheap to find, and map the work in TensorFlow.",
    "list": "list() makes the whole dataset at once and keeps it in memory; loop over "
    "it, or take() a few; cardinality() tells its length.",
    "one worker": "This dataset works in Python for each batch, in one worker; do the "
    "work for all rows beforehand, or give super().__init__() more workers.",
    "one call": "num_parallel_calls=1 works on one element at a time; tf.data.AUTOTUNE "
    "takes as many as pay.",
    "serial": "{}; give this map num_parallel_calls=tf.data.AUTOTUNE.",
    "frozen": "{} before cache is drawn once: each epoch sees the same examples; cache "
    "first, then augment.",
    "traced draw": "{} in a map draws once, when the function is traced, and every "
    "example gets the same; draw with tf.random.",
    "one draw": "{} after batch draws one number for the whole batch; map it before "
    "batch, or use a layer, which draws for each image.",
    "each": "This function does the same to a batch at once, and is called for each "
    "example; batch first, then map.",
    "anew": "{} runs for each example again in each epoch; where what it makes fits in "
    "memory, write .cache() after this map.",
}
_PYTHON = {"py_function", "numpy_function"}
_REPEATS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
# What reads a file for each item.
_READS = {"open", "imread", "load_img", "read_bytes", "read_text", "load", "loadtxt"}


def python_input(code: Code) -> Iterator[Hinted]:
    """What runs Python where TensorFlow could work by itself."""
    for call in code.named(*_PYTHON):
        if dotted(call.func).startswith(("tf.", "tensorf")):
            yield call, _SAYS["python"].format(called(call))
    for call in code.named("from_generator"):
        if _works(code.resolve(keyword(call, "generator", 0))):
            yield call, _SAYS["generator"]
    for call, chain in code.chains.listed.items():
        if not {"take", "?"} & {*names_of(chain)}:
            yield call, _SAYS["list"]
    for one in filter(is_dataset, code.classes):
        items = [f for f in one.body if getattr(f, "name", "") == "__getitem__"]
        workers = any(k.arg == "workers" for call in code.calls for k in call.keywords)
        hidden = any(k.arg is None for c in code.named(one.name) for k in c.keywords)
        if items and not workers and not hidden and _is_expensive(items[0]):
            yield one, _SAYS["one worker"]


def _works(generator: ast.AST | None) -> bool:
    """Whether a generator does more than hand over what there is."""
    if not isinstance(generator, Function):
        return False
    loops = [n for n in ast.walk(generator) if isinstance(n, ast.For | ast.While)]
    parts = [part for loop in loops for part in loop.body]
    return bool(calls_in(*parts)) or any(isinstance(one, ast.For) for one in parts)


def _is_expensive(item: ast.AST) -> bool:
    repeats = any(isinstance(node, _REPEATS) for node in ast.walk(item))
    return repeats or bool(_READS & calls_in(item))


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
_KEEPS = {"cache", "snapshot", "save", "?", *_PYTHON}
_BATCHED = {"batch", "padded_batch", "ragged_batch"}
_PLAIN = (
    *(ast.Return, ast.Assign, ast.Import, ast.alias, ast.Name, ast.Constant),
    *(ast.Tuple, ast.BinOp, ast.operator, ast.expr_context, ast.Call, ast.keyword),
    *(ast.Attribute, ast.UnaryOp, ast.unaryop),
)


def mapped(code: Code) -> Iterator[Hinted]:
    """What each mapped function does at that place of its pipeline."""
    for chain in code.chains.made:
        names = names_of(chain)
        for place, stage in enumerate(chain):
            if stage.name == "map" and stage.call:
                yield from _map(code, stage.call, names[:place], names[place + 1 :])
    for chain in code.chains.trained:
        if chain[0].name not in SOURCES or _KEEPS & {*names_of(chain)}:
            continue
        for call in (one.call for one in chain if one.name == "map" and one.call):
            function = keyword(call, "map_func", 0)
            decodes = _first_of(_DECODES, code.calls_within(function))
            if decodes and not _random(code, function):
                yield call, _SAYS["anew"].format(decodes)


def _map(
    code: Code, call: ast.Call, before: Sequence[str], after: Sequence[str]
) -> Iterator[Hinted]:
    calls = keyword(call, "num_parallel_calls", 1)
    function = keyword(call, "map_func", 0)
    random, inside = _random(code, function), [*code.calls_within(function)]
    together = after[:1] == ["batch"] and _each_by_itself(code.resolve(function))
    if code.number(calls) == 1:
        yield calls or call, _SAYS["one call"]
    elif calls is None and not hides(call):
        # Why TensorFlow does not make it parallel by itself.
        off, alone = switched_off(code, _PARALLEL), "works on one element at a time"
        if off:
            yield call, _SAYS["serial"].format(f"With {off} off, a map {alone}")
        elif random:
            yield call, _SAYS["serial"].format(f"A map with {random} {alone}")
        elif after[:1] == ["batch"] and not together:
            why = f"TensorFlow makes one stage of a map and its batch, which {alone}"
            yield call, _SAYS["serial"].format(why)
    if random and "cache" in after and "unbatch" not in after:
        yield call, _SAYS["frozen"].format(random)
    drawn = [one for one in inside if dotted(one.func).startswith(_PYTHON_DRAWS)]
    # What Python draws in a function that is traced, and not run again.
    if drawn and not _first_of(_PYTHON, inside):
        yield drawn[0], _SAYS["traced draw"].format(dotted(drawn[0].func))
    once = _first_of(_ONE_DRAW, inside)
    if once and "batch" in before and "unbatch" not in before:
        yield call, _SAYS["one draw"].format(once)
    if together and not _BATCHED & {*before}:
        yield call, _SAYS["each"]


def _first_of(names: set[str], calls: Iterator[ast.Call] | Sequence[ast.Call]) -> str:
    return next((name for name in map(called, calls) if name in names), "")


def _random(code: Code, function: ast.AST | None) -> str:
    """What a function draws anew for each element; "" where nothing is seen."""
    for call in code.calls_within(function):
        name, whole = called(call), dotted(call.func)
        if name.startswith("random_") and not whole.startswith(_NUMPY):
            return name
        if whole.startswith("tf.random.") and name in _DRAWS:
            return whole
    layers = code.resolve(function)
    made = of_kind(ast.Call, layers) if isinstance(layers, ast.Call) else ()
    return next((name for name in map(called, made) if _is_random_layer(name)), "")


def _is_random_layer(name: str) -> bool:
    return name.startswith("Random") and name[6:7].isupper() and "Normal" not in name


def _each_by_itself(function: ast.AST | None) -> bool:
    """Whether a function only casts, scales and encodes what it is given."""
    if not isinstance(function, Function):
        return False
    body = function.body if isinstance(function.body, list) else [function.body]
    seen = [one for part in body for one in ast.walk(part)]
    works = any(isinstance(one, ast.BinOp | ast.Call) for one in seen)
    plain = all(isinstance(one, _PLAIN) for one in seen)
    return works and plain and calls_in(*body) <= _EACH_BY_ITSELF
