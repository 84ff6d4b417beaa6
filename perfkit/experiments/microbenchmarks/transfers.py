"""How fast do bytes come to the GPU and back?

Pageable memory is what programs have: TensorFlow copies from and to it here, as it does
in a training. Pinned memory cannot be moved away, so the GPU fetches from it by itself:
CUDA's own library copies from and to it here, and shows what the link can do.

Each trial also looks at sizes from 4 KB to 1 GB and tells the seconds of one copy: for
small ones the start of a copy is all that it costs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import RunError
from perfkit.experiments.shared import peaks
from perfkit.experiments.shared.probe import Probe, repeated
from perfkit.experiments.shared.probe_gpu import on_gpu, syncing
from perfkit.measure.tick import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.measure.tick import Yielded

_SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30)
# The rung itself: large enough that starting a copy does not show.
_SIZE = 1 << 28
_COPIES = 5
BY_SIZE = "seconds by size"
# From CUDA's cudaMemcpyKind.
_TO_GPU, _FROM_GPU = 1, 2


def pageable(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy as TensorFlow does, between ordinary memory and the GPU."""
    with on_gpu():
        yield from _swept(lambda size: _with_tensorflow(size, to_gpu), syncing())


def pinned(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy between pinned memory and the GPU.

    Raises:
        RunError: CUDA's library is missing, or refuses.
    """
    cuda = _cuda()
    yield from _swept(
        lambda size: _with_cuda(cuda, size, to_gpu),
        lambda: _ask(cuda.cudaDeviceSynchronize),
    )


def _swept(
    copier: Callable[[int], Callable[[], object]], sync: Callable[[], object]
) -> Iterator[Yielded]:
    yield Note(BY_SIZE, {str(n): _once(copier(n), sync) for n in _SIZES})
    yield from repeated(copier(_SIZE), _SIZE, sync)


def _once(copy: Callable[[], object], sync: Callable[[], object]) -> float:
    """Seconds of one copy, the median of a few after the first."""
    spent = []
    for _ in range(_COPIES + 1):
        began = time.perf_counter()
        copy()
        sync()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent[1:])


def _with_tensorflow(size: int, to_gpu: bool) -> Callable[[], object]:
    import tensorflow as tf

    with tf.device("CPU:0"):
        there = tf.zeros([size], tf.uint8)
    if to_gpu:
        return lambda: tf.identity(there)
    here = tf.identity(there)
    return lambda: here.numpy()


def _with_cuda(cuda: Any, size: int, to_gpu: bool) -> Callable[[], object]:
    host, device = ctypes.c_void_p(), ctypes.c_void_p()
    _ask(cuda.cudaMallocHost, ctypes.byref(host), ctypes.c_size_t(size))
    _ask(cuda.cudaMalloc, ctypes.byref(device), ctypes.c_size_t(size))
    target, source = (device, host) if to_gpu else (host, device)
    kind = _TO_GPU if to_gpu else _FROM_GPU
    return lambda: _ask(
        cuda.cudaMemcpy, target, source, ctypes.c_size_t(size), ctypes.c_int(kind)
    )


def _ask(call: Callable[..., int], *arguments: Any) -> None:
    code = call(*arguments)
    if code:
        raise RunError(f"CUDA refused to copy to the GPU (its error {code}).")


def _cuda() -> ctypes.CDLL:
    """CUDA's runtime library: from its package, or where the system has it."""
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or ()) if package else []
    places = [Path(f) / "cuda_runtime/lib" for f in folders]
    found = [str(p) for place in places for p in place.glob("libcudart.so*")]
    for name in (*found, "libcudart.so.12", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RunError(
        "CUDA's runtime library is not here; install it with "
        "`pip install tensorflow[and-cuda]`."
    )


def _probe(name: str, *, to_gpu: bool, is_pinned: bool) -> Probe:
    copy = pinned if is_pinned else pageable
    memory = "pinned memory, by CUDA itself" if is_pinned else "ordinary memory"
    return Probe(
        name=name,
        group="GPU",
        unit="B",
        what=f"copying {_SIZE >> 20} MB {'from' if to_gpu else 'to'} {memory}",
        work=functools.partial(copy, to_gpu=to_gpu),
        peak=peaks.link,
        tensorflow=True,
    )


TO_GPU = ("to the GPU", "to the GPU, pinned")
_FROM = ("from the GPU", "from the GPU, pinned")
PINNED = (TO_GPU[1], _FROM[1])
PROBES = tuple(
    _probe(name, to_gpu=name in TO_GPU, is_pinned=name in PINNED)
    for name in (*TO_GPU, *_FROM)
)
