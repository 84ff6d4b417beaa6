"""Which libraries for a GPU a process has loaded, and where they came from."""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import TYPE_CHECKING

from perfkit.machine.record import Library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The parts of cuDNN (libcudnn_ops and so on) come with it and are not named.
_FOR_GPU = re.compile(
    r"/(libcu(?:da|blas|dnn|fft|rand|solver|sparse|pti)[A-Za-z]*"
    r"|libnv(?:rtc|JitLink|idia-[\w-]+)|libnccl)\.so\.?([\d.]*)$"
)
_PACKAGED = re.compile(r"/(?:site|dist)-packages/(?:nvidia/(\w+)/)?")
# These belong to the driver and are numbered like it, but asked for as number 1.
_OF_DRIVER = re.compile(r"libcuda$|libnvidia-")


def loaded(paths: Iterable[str], variables: Mapping[str, str]) -> tuple[Library, ...]:
    """Name the libraries among some files that TensorFlow uses a GPU with.

    Args:
        paths: Of all files that a process has loaded.
        variables: Its environment, whose LD_LIBRARY_PATH may have led to them.
    """
    searched = variables.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    folders = tuple(folder.rstrip("/") + "/" for folder in searched if folder)
    found = (_library(path, folders) for path in sorted(set(paths)))
    return tuple(library for library in found if library)


def _library(path: str, searched: tuple[str, ...]) -> Library | None:
    named = _FOR_GPU.search(path)
    if not named:
        return None
    stem, number = named[1], named[2]
    asked = "1" if _OF_DRIVER.match(stem) else number.partition(".")[0]
    packaged = _PACKAGED.search(path)
    if packaged:
        origin, version = "package", _version(packaged[1])
    else:
        origin, version = "search path" if path.startswith(searched) else "system", None
    return Library(
        name=".".join(filter(None, (f"{stem}.so", asked))),
        version=version or (number if "." in number else None),
        origin=origin,
    )


def _version(part: str | None) -> str | None:
    """Of the package that brings a part of CUDA, such as ``cuda_runtime``."""
    for cuda in ("-cu12", "-cu13", "", "-cu11"):
        try:
            name = f"nvidia-{(part or '').replace('_', '-')}{cuda}"
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
