"""Pipelines: stages in an order that is often a mistake, and what they map."""

import ast
import re
from collections.abc import Iterator, Sequence

from perfkit.diagnosis.hints.chains import SOURCES, Chain
from perfkit.diagnosis.hints.code import Code, Hinted
from perfkit.diagnosis.source import (
    Function,
    called,
    calls_in,
    dotted,
    hides,
    is_dataset,
    is_literal,
    keyword,
    of_kind,
    receiver,
)

_SAYS = {
    "early prefetch": "prefetch stands before {0}: it makes ready what {0} is given, "
    "not what it makes; write it last.",
    "repeated cache": "cache after repeat keeps the data once for each repetition; "
    "cache first, then repeat.",
    "cut cache": "A cache that is never read to its end is thrown away, so take after "
    "it works without one; take first, then cache.",
    "device": "A pipeline runs on the CPU, whatever device stands around it; a layer "
    "in the model is what runs on the GPU.",
    "late shuffle": "After batch, shuffle mixes whole batches, not examples; shuffle "
    "first, then batch.",
    "small buffer": "shuffle({0:g}) draws from {0:g} examples at a time, {1}: their "
    "order hardly changes; give it a buffer nearer to the number of examples.",
    "one order": "cache after shuffle keeps the order of the first epoch for all "
    "others; cache first, then shuffle.",
    "no prefetch": "With {} off, TensorFlow adds no prefetch of its own, so no batch "
    "is made while the model works; end with .prefetch(tf.data.AUTOTUNE).",
    "no batch": "Nothing puts these examples into batches, and fit takes a dataset as "
    "it is; write .batch(32) before prefetch.",
    "small batch": "A batch of {:g} leaves each step little to do; a larger one is "
    "often faster, and changes what is learnt.",
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
_BATCHES = {
    *("batch", "padded_batch", "ragged_batch", "rebatch", "bucket_by_sequence_length"),
    *("apply", "from_generator", "window", "image_dataset_from_directory"),
}
# A buffer that holds less than this part of the data hardly mixes it.
_TINY = 20
_FEW = 4
_LARGE = re.compile("Conv|LSTM|GRU|RNN|Attention|^(ResNet|EfficientNet|VGG|MobileNet)")
_WORK = {"map", "filter", "shuffle", "batch", "padded_batch"}
# What TensorFlow itself appends a prefetch by; seen in the plans of 2.21.
_PREFETCH = ("apply_default_optimizations", "inject_prefetch")


def staged(code: Code) -> Iterator[Hinted]:
    """What stands in each pipeline, and then what is missing in those trained on."""
    for chain in code.chains.made:
        for place, stage in enumerate(chain):
            if stage.call:
                yield from _stage(code, stage.call, chain[:place], chain[place:])
    for chain in code.chains.learnt:
        if "?" not in _names(chain) and chain[-1].call:
            yield from _complete(code, chain, chain[-1].call)


def _names(chain: Chain) -> list[str]:
    return [stage.name for stage in chain]


def _switched_off(code: Code, options: Sequence[str]) -> str:
    """The option that is off of those by which TensorFlow rewrites a pipeline."""
    for node, target in code.assigned:
        written = ast.unparse(target)
        off = next((one for one in options if written.endswith(one)), "")
        if off and is_literal(node.value, False):
            return off
    return ""


def _stage(code: Code, call: ast.Call, before: Chain, on: Chain) -> Iterator[Hinted]:
    made, (name, *after) = _names(before), _names(on)
    if name == "shuffle":
        yield from _shuffle(code, call, before, on)
    if name == "prefetch" and not {"?", "prefetch"} & {*after}:
        works = all(_WORK & {*rest} for rest in _trained_behind(code, call))
        last = next((name for name in reversed(after) if name in _WORK), "")
        # What works in parallel runs ahead by itself, before it is asked.
        calls = (one.call for one in on[1:] if one.call)
        if (
            works
            and last
            and not any(keyword(one, "num_parallel_calls", 1) for one in calls)
        ):
            yield call, _SAYS["early prefetch"].format(last)
    if name == "cache" and "repeat" in made:
        yield call, _SAYS["repeated cache"]
    if name == "cache" and after[:1] == ["take"]:
        behind = _trained_behind(code, call)
        if all(rest[:1] == ["take"] for rest in behind):
            yield call, _SAYS["cut cache"]
    if any(map(_is_gpu, code.names.above(call))):
        yield call, _SAYS["device"]


def _trained_behind(code: Code, call: ast.Call) -> list[list[str]]:
    """What stands behind a stage in each pipeline that is trained on."""
    return [
        _names(chain)[at + 1 :]
        for chain in code.chains.learnt
        for at, stage in enumerate(chain)
        if stage.call is call
    ]


def _is_gpu(node: ast.AST) -> bool:
    """Whether it is ``with tf.device("GPU")``."""
    items = node.items if isinstance(node, ast.With) else []
    return any(
        called(device) == "device" and "GPU" in ast.unparse(device.args[0]).upper()
        for device in (item.context_expr for item in items)
        if isinstance(device, ast.Call) and dotted(device.func) and device.args
    )


def _shuffle(code: Code, call: ast.Call, before: Chain, on: Chain) -> Iterator[Hinted]:
    made, buffer = _names(before), code.number(keyword(call, "buffer_size", 0))
    if "batch" in made and not {"shuffle", "unbatch"} & {*made}:
        # What is batched again behind it was no batch of examples.
        if not _BATCHED & {*_names(on)[1:]}:
            yield call, _SAYS["late shuffle"]
    elif buffer is not None:
        data = _examples(code, before)
        batch = next((s.call for s in on if s.name == "batch" and s.call), None)
        size = code.number(keyword(batch, "batch_size", 0)) if batch else None
        if size and buffer < size:
            of = f"fewer than a batch of {size:g}"
            yield call, _SAYS["small buffer"].format(buffer, of)
        elif data and buffer * _TINY <= data:
            of = f"of {data:,} that there are"
            yield call, _SAYS["small buffer"].format(buffer, of)


def _complete(code: Code, chain: Chain, last: ast.Call) -> Iterator[Hinted]:
    names = _names(chain)
    if "cache" in names:
        place = len(names) - 1 - names[::-1].index("cache")
        cache = chain[place].call
        if cache and "shuffle" in names[:place] and "shuffle" not in names[place:]:
            yield cache, _SAYS["one order"]
    off = _switched_off(code, _PREFETCH)
    if off and "prefetch" not in names:
        yield last, _SAYS["no prefetch"].format(off)
    if not _BATCHES & {*names} and _is_unbatched(code, chain):
        yield last, _SAYS["no batch"]
    # Where no image or sequence needs the memory.
    layers = {called(call) for call in code.calls}
    if "Dense" not in layers or any(map(_LARGE.search, layers)):
        return
    for call in (one.call for one in chain if one.name == "batch" and one.call):
        given = keyword(call, "batch_size", 0)
        size, found = code.number(given), code.constant(given)
        if size and found and size <= _FEW:
            yield found, _SAYS["small batch"].format(size)


# The functions that make an array, and where each takes its shape.
_SHAPED = {
    **{"zeros": 0, "ones": 0, "empty": 0, "random": 0, "random_sample": 0},
    **{"standard_normal": 0, "normal": 2, "uniform": 2, "integers": 2, "randint": 2},
}
_SAME = {"astype", "copy"}


def _examples(code: Code, chain: Chain) -> int | None:
    """The number of examples that a pipeline starts from; None where none is seen."""
    if not {*_names(chain)} <= {"from_tensor_slices", "cache", "map"}:
        return None
    source = chain[0].call if chain else None
    shape = _shape(code, _first_array(code, source)) if source else None
    return shape[0] if shape else None


def _is_unbatched(code: Code, chain: Chain) -> bool:
    """Whether a pipeline hands over single examples, as far as its source shows."""
    source = chain[0].call
    if chain[0].name != "from_tensor_slices" or not source:
        return False
    array = _first_array(code, source)
    inputs = [*code.named("Input", "InputLayer")]
    takes = code.resolve(keyword(inputs[0], "shape", 0)) if len(inputs) == 1 else None
    shape = _shape(code, array)
    single = isinstance(takes, ast.Tuple) and len(shape or ()) == len(takes.elts) + 1
    return single or _is_loaded(code, array)


def _shape(code: Code, node: ast.AST | None) -> tuple[int, ...] | None:
    """The shape of an array whose sizes are numbers in the code."""
    found = code.resolve(node)
    if not isinstance(found, ast.Call):
        return None
    of = receiver(found)
    if called(found) in _SAME and of:
        return _shape(code, of)
    place = _SHAPED.get(called(found))
    if place is None:
        return None
    shape = keyword(found, "size") or keyword(found, "shape", place)
    sizes = [code.number(one) for one in getattr(code.resolve(shape), "elts", [shape])]
    return None if None in sizes else tuple(int(one or 0) for one in sizes)


def _first_array(code: Code, source: ast.Call) -> ast.AST | None:
    given = code.resolve(source.args[0]) if source.args else None
    if isinstance(given, ast.Tuple | ast.List):
        return given.elts[0] if given.elts else None
    return given


def _is_loaded(code: Code, node: ast.AST | None) -> bool:
    """Whether an array comes from ``keras.datasets`` and is scaled at most."""
    node = _unscaled(node)
    bound = code.names.lookup(node) if isinstance(node, ast.Name) else []
    loaded = [one for one in bound if _unpacks_loaded(code, one)]
    return bool(loaded) and all(
        one in loaded
        or isinstance(one, ast.AugAssign)
        or dotted(_unscaled(one) or one) == dotted(node or one)
        for one in bound
    )


def _unscaled(value: ast.AST | None) -> ast.AST | None:
    """What a value is made of by another type or range alone."""
    while True:
        if isinstance(value, ast.BinOp):
            value = value.left
        elif isinstance(value, ast.Call) and called(value) in _SAME:
            value = receiver(value)
        else:
            return value


def _unpacks_loaded(code: Code, target: ast.AST) -> bool:
    above = code.names.nearest(target, ast.Assign)
    value = above.value if above else None
    return isinstance(value, ast.Call) and dotted(value.func).endswith(".load_data")


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
        if not {"take", "?"} & {*_names(chain)}:
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
_GENERATORS = ("default_rng", "RandomState", "Random")
_DRAWING = ("numpy.random", "random")
_NO_DRAWS = {"seed", "Generator", *_GENERATORS}
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
        names = _names(chain)
        if _is_column(chain):
            continue
        for place, stage in enumerate(chain):
            if stage.name == "map" and stage.call:
                yield from _map(code, stage.call, names[:place], names[place + 1 :])
    for chain in code.chains.learnt:
        if chain[0].name not in SOURCES or _KEEPS & {*_names(chain)}:
            continue
        for call in (one.call for one in chain if one.name == "map" and one.call):
            function = keyword(call, "map_func", 0)
            decodes = _first_of(_DECODES, code.calls_within(function))
            if decodes and not _may_draw(code, function):
                yield call, _SAYS["anew"].format(decodes)


def _is_column(chain: Chain) -> bool:
    """Whether it maps a column of a table, which has a map as well and no more."""
    of = [receiver(stage.call) for stage in chain if stage.call]
    return {*_names(chain)} == {"?", "map"} and isinstance(of[0], ast.Subscript)


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
        off, alone = _switched_off(code, _PARALLEL), "works on one element at a time"
        if off:
            yield call, _SAYS["serial"].format(f"With {off} off, a map {alone}")
        elif random:
            yield call, _SAYS["serial"].format(f"A map with {random} {alone}")
        elif after[:1] == ["batch"] and not together:
            why = f"TensorFlow makes one stage of a map and its batch, which {alone}"
            yield call, _SAYS["serial"].format(why)
    if random and "cache" in after and "unbatch" not in after:
        yield call, _SAYS["frozen"].format(random)
    if drawn := python_draws(code, inside):
        yield drawn[0], _SAYS["traced draw"].format(dotted(drawn[0].func))
    once = _first_of(_ONE_DRAW, inside)
    if once and "batch" in before and "unbatch" not in before:
        yield call, _SAYS["one draw"].format(once)
    if together and not _BATCHED & {*before}:
        yield call, _SAYS["each"]


def python_draws(code: Code, calls: Sequence[ast.Call]) -> list[ast.Call]:
    """Of a function's calls those that draw in Python: once, where it is traced.

    None where it also hands on what is run as Python: they may stand in there.
    """
    generators = {
        called(target)
        for node, target in code.assigned
        if isinstance(node.value, ast.Call) and called(node.value) in _GENERATORS
    } - {""} | {*_GENERATORS}
    imported = {
        alias.asname or alias.name
        for node in code.nodes
        if isinstance(node, ast.ImportFrom) and node.module in _DRAWING
        for alias in node.names
    }
    found = [
        call
        for call in calls
        if dotted(call.func).startswith(_PYTHON_DRAWS)
        or (receiver(call) is None and called(call) in imported)
        or called(receiver(call) or call) in generators
        if called(call) not in _NO_DRAWS
    ]
    return [] if _first_of(_PYTHON, calls) else found


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


def _may_draw(code: Code, function: ast.AST | None) -> bool:
    """Whether a function may give another thing in each epoch, seen or not."""
    return bool(_random(code, function)) or any(
        "rand" in dotted(call.func).lower()
        or called(call) in _DRAWS | _PYTHON
        or _random(code, call.func)
        for call in code.calls_within(function)
    )


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
