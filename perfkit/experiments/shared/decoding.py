"""How fast do this machine's cores decode images when they do nothing else?

One process per core decodes the same files from memory, with the operation that the
pipelines use. No pipeline that decodes whole images on these cores can be faster.
"""

from __future__ import annotations

import functools
import itertools
import mmap
import os
import signal
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

from perfkit.errors import RunError
from perfkit.experiments.shared import cores
from perfkit.measure.tick import READY, TICK_S, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.experiments.shared.images import Images
    from perfkit.measure.tick import Yielded

# Enough files to be worth it, without filling the memory with a folder of huge ones.
_HELD = 256_000_000
_COUNT = struct.Struct("q")
_ENDED = -1
# Each process starts elsewhere, so that they do not read the same bytes at once.
_APART = 37


def with_tensorflow() -> Callable[[bytes], object]:
    """Give ``tf.io.decode_jpeg`` as the pipelines call it."""
    import tensorflow as tf

    _without_gpus()
    return lambda file: tf.io.decode_jpeg(file, channels=3)


def only_a_square(side: int) -> Callable[[bytes], object]:
    """Give what decodes only a square of each image, in four places by turns."""
    import tensorflow as tf

    _without_gpus()
    places = itertools.cycle([(0.1, 0.9), (0.6, 0.3), (0.9, 0.6), (0.4, 0.1)])

    def decode(file: bytes) -> object:
        height, width, _ = tf.io.extract_jpeg_shape(file).numpy()
        top, left = next(places)
        corner = [int(top * (height - side)), int(left * (width - side))]
        return tf.io.decode_and_crop_jpeg(file, [*corner, side, side], channels=3)

    return decode


def limit(
    images: Images, decoder: Callable[[], Callable[[bytes], object]] = with_tensorflow
) -> Iterator[Yielded]:
    """Decode on every core and nothing else; the images of all cores are counted.

    It has to be called before the process has run anything in TensorFlow.

    Args:
        images: What to decode, over and over.
        decoder: Makes the function that decodes; called in each process.
    """
    held = _in_memory(images)
    workers = cores.granted()
    counts = mmap.mmap(-1, _COUNT.size * workers)
    start = _fork if sys.platform == "linux" else _thread
    ends = [start(worker, held, decoder, counts) for worker in range(workers)]
    try:
        yield from _ticks(counts, workers)
    finally:
        for end in ends:
            end()


def _without_gpus() -> None:
    """Decoding needs none, and as many processes as cores would fight for it."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


def _ticks(counts: mmap.mmap, workers: int) -> Iterator[Yielded]:
    done = [0] * workers
    while not all(done):
        time.sleep(0.001)
        done = _read(counts, done)
    yield READY
    while True:
        before = sum(done)
        while sum(done) == before:
            time.sleep(TICK_S)
            done = _read(counts, done)
        yield Tick(sum(done) - before)


def _in_memory(images: Images) -> list[bytes]:
    held, size = [], 0
    for path in images.paths:
        with open(path, "rb") as file:
            held.append(file.read())
        size += len(held[-1])
        if size > _HELD:
            break
    return held


def _fork(
    worker: int,
    held: Sequence[bytes],
    decoder: Callable[[], Callable[[bytes], object]],
    counts: mmap.mmap,
) -> Callable[[], object]:
    parent = os.getpid()
    child = os.fork()
    if child:
        return functools.partial(_end, child)
    try:
        _decode_all(worker, held, decoder(), counts, lambda: os.getppid() == parent)
    finally:
        _COUNT.pack_into(counts, worker * _COUNT.size, _ENDED)
        os._exit(1)


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _thread(
    worker: int,
    held: Sequence[bytes],
    decoder: Callable[[], Callable[[bytes], object]],
    counts: mmap.mmap,
) -> Callable[[], object]:
    ended = threading.Event()
    work = (worker, held, decoder(), counts, lambda: not ended.is_set())
    threading.Thread(target=_decode_all, args=work, daemon=True).start()
    return ended.set


def _decode_all(
    worker: int,
    held: Sequence[bytes],
    decode: Callable[[bytes], object],
    counts: mmap.mmap,
    wanted: Callable[[], bool],
) -> None:
    done, at = 0, worker * _APART
    while wanted():
        decode(held[at % len(held)])
        done, at = done + 1, at + 1
        _COUNT.pack_into(counts, worker * _COUNT.size, done)


def _read(counts: mmap.mmap, known: Sequence[int]) -> list[int]:
    done = [
        _COUNT.unpack_from(counts, worker * _COUNT.size)[0]
        for worker in range(len(known))
    ]
    if _ENDED in done:
        raise RunError("One of the processes that decode ended before its time.")
    # A number that is just being written reads as 0 for a moment.
    return [max(pair) for pair in zip(done, known, strict=True)]
