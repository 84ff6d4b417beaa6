"""Stages of a pipeline in an order that is often a mistake."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import called, dotted, keyword

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.hints.code import Code, Hinted
    from perfkit.diagnosis.hints.names import Chain, Stage


# The functions that make an array, and where each takes its shape.
_SHAPED = {
    **{"zeros": 0, "ones": 0, "empty": 0, "random": 0, "random_sample": 0},
    **{"standard_normal": 0, "normal": 2, "uniform": 2, "integers": 2, "randint": 2},
}
_SAME = {"astype", "copy"}


def examples(code: Code, chain: Chain) -> int | None:
    """The number of examples that a pipeline starts from; None where none is seen."""
    if any(one.name not in ("from_tensor_slices", "cache", "map") for one in chain):
        return None
    source = chain[0].call if chain else None
    shape = shape_of(code, _first_array(code, source)) if source else None
    return shape[0] if shape else None


def is_unbatched(code: Code, chain: Chain) -> bool:
    """Whether a pipeline hands over single examples, as far as its source shows."""
    source = chain[0].call
    if chain[0].name != "from_tensor_slices" or not source:
        return False
    array = _first_array(code, source)
    if _is_loaded(code, array):
        return True
    shape, takes = shape_of(code, array), _input(code)
    return shape is not None and takes is not None and len(shape) == len(takes.elts) + 1


def shape_of(code: Code, node: ast.AST | None) -> tuple[int, ...] | None:
    """The shape of an array whose sizes are numbers in the code."""
    found = code.resolve(node)
    if not isinstance(found, ast.Call):
        return None
    if called(found) in _SAME and isinstance(found.func, ast.Attribute):
        return shape_of(code, found.func.value)
    place = _SHAPED.get(called(found))
    if place is None:
        return None
    shape = keyword(found, "size") or keyword(found, "shape") or _at(found, place)
    sizes = [code.number(one) for one in getattr(code.resolve(shape), "elts", [shape])]
    return None if None in sizes else tuple(int(one or 0) for one in sizes)


def _at(call: ast.Call, place: int) -> ast.expr | None:
    return call.args[place] if len(call.args) > place else None


def _first_array(code: Code, source: ast.Call) -> ast.AST | None:
    given = code.resolve(source.args[0]) if source.args else None
    if isinstance(given, ast.Tuple | ast.List):
        given = given.elts[0] if given.elts else None
    return given


def _is_loaded(code: Code, node: ast.AST | None) -> bool:
    """Whether an array comes from ``keras.datasets`` and is scaled at most."""
    if isinstance(node, ast.BinOp):
        return _is_loaded(code, node.left)
    if isinstance(node, ast.Call) and called(node) in _SAME:
        return _is_loaded(code, getattr(node.func, "value", None))
    bound = code.names.lookup(node) if isinstance(node, ast.Name) else []
    if not isinstance(node, ast.Name) or not bound:
        return False
    return any(_unpacks_loaded(code, one) for one in bound) and all(
        isinstance(one, ast.AugAssign)
        or _unpacks_loaded(code, one)
        or _scales(one, node.id)
        for one in bound
    )


def _unpacks_loaded(code: Code, target: ast.AST) -> bool:
    above = next(
        (o for o in code.names.above(target) if isinstance(o, ast.Assign)), None
    )
    value = above.value if above else None
    return isinstance(value, ast.Call) and dotted(value.func).endswith(".load_data")


def _scales(value: ast.AST, name: str) -> bool:
    """Whether a value is the name's own, in another type or range."""
    while isinstance(value, ast.BinOp | ast.Call):
        if isinstance(value, ast.BinOp):
            value = value.left
        elif called(value) in _SAME and isinstance(value.func, ast.Attribute):
            value = value.func.value
        else:
            return False
    return isinstance(value, ast.Name) and value.id == name


def _input(code: Code) -> ast.Tuple | None:
    """The shape of the one input of a model, where it is written as a tuple."""
    found = [one for one in code.calls if called(one) in ("Input", "InputLayer")]
    shape = keyword(found[0], "shape", 0) if len(found) == 1 else None
    value = code.resolve(shape)
    return value if isinstance(value, ast.Tuple) else None


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
                yield from _stage(code, stage, stage.call, chain[:place], chain[place:])
    for chain in code.chains.trained:
        names = _names(chain)
        if "?" not in names and chain[-1].call:
            yield from _complete(code, chain, names, chain[-1].call)


def _stage(
    code: Code, stage: Stage, call: ast.Call, before: Chain, on: Chain
) -> Iterator[Hinted]:
    made, after = _names(before), _names(on[1:])
    if stage.name == "shuffle":
        yield from _shuffle(code, call, before, on)
    if stage.name == "prefetch" and not {"?", "prefetch"} & set(after):
        last = next((name for name in reversed(after) if name in _WORK), "")
        if last and not _runs_ahead(on[1:]):
            says = (
                f"prefetch stands before {last}: it makes ready what {last} is given, "
                "not what it makes; write it last."
            )
            yield call, says
    if stage.name == "cache" and "repeat" in made:
        says = (
            "cache after repeat keeps the data once for each repetition; cache first, "
            "then repeat."
        )
        yield call, says
    if stage.name == "cache" and after[:1] == ["take"]:
        says = (
            "A cache that is never read to its end is thrown away, so take after it "
            "works without one; take first, then cache."
        )
        yield call, says
    if _on_gpu(code, call):
        says = (
            "A pipeline runs on the CPU, whatever device stands around it; a layer in "
            "the model is what runs on the GPU."
        )
        yield call, says


def _runs_ahead(chain: Chain) -> bool:
    """Whether a stage works in parallel, and so before it is asked, by itself."""
    given = (one.call for one in chain if one.call)
    return any(keyword(one, "num_parallel_calls", 1) for one in given)


def _shuffle(code: Code, call: ast.Call, before: Chain, on: Chain) -> Iterator[Hinted]:
    made = _names(before)
    buffer = code.number(keyword(call, "buffer_size", 0))
    if "batch" in made and not {"shuffle", "unbatch"} & set(made):
        says = (
            "After batch, shuffle mixes whole batches, not examples; shuffle first, "
            "then batch."
        )
        yield call, says
    elif buffer is not None:
        data = examples(code, before)
        batch = next((s.call for s in on if s.name == "batch" and s.call), None)
        size = code.number(keyword(batch, "batch_size", 0)) if batch else None
        if size and buffer < size:
            yield call, _mixes(buffer, f"fewer than a batch of {size:g}")
        elif data and buffer * _TINY <= data:
            yield call, _mixes(buffer, f"of {data:,} that there are")


def _mixes(buffer: float, of: str) -> str:
    return (
        f"shuffle({buffer:g}) draws from {buffer:g} examples at a time, {of}: their "
        "order hardly changes; give it a buffer nearer to the number of examples."
    )


def _complete(
    code: Code, chain: Chain, names: list[str], last: ast.Call
) -> Iterator[Hinted]:
    frozen = _last(chain, "cache", but_for="shuffle", after="shuffle")
    if frozen:
        says = (
            "cache after shuffle keeps the order of the first epoch for all others; "
            "cache first, then shuffle."
        )
        yield frozen, says
    off = switched_off(code, _PREFETCH)
    if off and "prefetch" not in names:
        says = (
            f"With {off} off, TensorFlow adds no prefetch of its own, so no batch is "
            "made while the model works; end with .prefetch(tf.data.AUTOTUNE)."
        )
        yield last, says
    if not _BATCHES & set(names) and is_unbatched(code, chain):
        says = (
            "Nothing puts these examples into batches, and fit takes a dataset as it "
            "is; write .batch(32) before prefetch."
        )
        yield last, says
    yield from _small(code, chain)


def _small(code: Code, chain: Chain) -> Iterator[Hinted]:
    """A batch of a few rows, where no image or sequence needs the memory."""
    layers = {called(call) for call in code.calls}
    if "Dense" not in layers or any(map(_LARGE.search, layers)):
        return
    for call in (one.call for one in chain if one.name == "batch" and one.call):
        given = keyword(call, "batch_size", 0)
        size, found = code.number(given), code.constant(given)
        if size and found and size <= _FEW:
            says = (
                f"A batch of {size:g} leaves each step little to do; a larger one is "
                "often faster, and changes what is learnt."
            )
            yield found, says


def _last(chain: Chain, name: str, *, but_for: str, after: str) -> ast.Call | None:
    """The last stage of a name, if it follows another and none of a kind follows it."""
    names = _names(chain)
    if name not in names:
        return None
    place = len(names) - 1 - names[::-1].index(name)
    follows = after in names[:place] and but_for not in names[place:]
    return chain[place].call if follows else None


def _names(chain: Sequence[Stage]) -> list[str]:
    return [stage.name for stage in chain]


def switched_off(code: Code, options: Sequence[str]) -> str:
    """The option that is off of those by which TensorFlow mends a pipeline."""
    for node in code.nodes:
        if isinstance(node, ast.Assign):
            value = getattr(node.value, "value", None)
            for target in map(ast.unparse, node.targets):
                off = next((one for one in options if target.endswith(one)), "")
                if off and value is False:
                    return off
    return ""


def _on_gpu(code: Code, call: ast.Call) -> bool:
    """Whether a call stands in ``with tf.device("GPU")`` of its own function."""
    for above in code.names.above(call):
        for item in getattr(above, "items", []) if isinstance(above, ast.With) else []:
            device = item.context_expr
            if called(device) == "device" and dotted(getattr(device, "func", device)):
                arguments = getattr(device, "args", [])
                if arguments and "GPU" in ast.unparse(arguments[0]).upper():
                    return True
    return False
