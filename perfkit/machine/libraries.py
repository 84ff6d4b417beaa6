"""Can TensorFlow load the libraries that it needs for a GPU, and from where?

Its own loader is asked, in a short process: this one stays clean.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.machine import packages
from perfkit.machine.environment import cleaned
from perfkit.machine.record import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perfkit.machine.packages import Built

# Where the files lie on a slow disk, the answer is not waited for any longer.
_PATIENCE_S = 2.0
# Of each library.
_TOLD = {"name", "file", "package", "words"}
# The driver, then what TensorFlow opens before it uses a GPU, by CUDA's first number.
_NEEDED: dict[str, tuple[str, ...]] = {
    "12": (
        "libcuda.so.1",
        "libcudart.so.12",
        "libcublas.so.12",
        "libcublasLt.so.12",
        "libcufft.so.11",
        "libcusolver.so.11",
        "libcusparse.so.12",
    )
}


def tried(
    built: Built, variables: Mapping[str, str], names: tuple[str, ...]
) -> Callable[[], tuple[Library, ...]]:
    """Begin to try the libraries; the function that comes back waits for the answer.

    Args:
        built: The TensorFlow that needs them.
        variables: The environment to try them in.
        names: Words to leave out of what the loader says.
    """
    needed = _NEEDED.get((built.cuda or "").split(".")[0], ())
    folder = built.folder
    if built.build != "cuda" or not needed or not built.cudnn or folder is None:
        return tuple
    needed = (*needed, f"libcudnn.so.{built.cudnn.split('.')[0]}")
    script = str(Path(__file__).with_name("loading.py"))
    command = [sys.executable, "-I", "-S", script, str(folder / "tensorflow")]
    try:
        child = subprocess.Popen(
            [*command, str(folder), *needed],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return tuple
    until = time.monotonic() + _PATIENCE_S
    return lambda: tuple(
        _library(told, folder, variables, names) for told in _lines(child, until)
    )


def _lines(child: subprocess.Popen[bytes], until: float) -> Iterator[dict[str, str]]:
    """What the process told; all that it had told where it took too long."""
    try:
        told, _ = child.communicate(timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        told, _ = child.communicate()
    for line in told.decode(errors="replace").splitlines():
        # One that was cut off is not an answer.
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and said.keys() >= _TOLD:
                yield said


def _library(
    told: dict[str, Any],
    folder: Path,
    variables: Mapping[str, str],
    names: tuple[str, ...],
) -> Library:
    file = told["file"] or told["package"]
    problem = cleaned(told["words"], names)
    if not told["file"] and not problem:
        problem = "it is installed, in a folder where this TensorFlow does not look"
    return Library(
        name=told["name"],
        version=_version(file, folder),
        origin=_origin(file, folder, variables) if file else None,
        problem=problem,
    )


def _origin(file: str, folder: Path, variables: Mapping[str, str]) -> str:
    places = [folder]
    # What conda installs for the environment lies beside Python, not in its packages.
    places += [up for up in folder.parents if os.path.isdir(up / "conda-meta")][:1]
    real = os.path.realpath(file)
    if any(Path(real).is_relative_to(os.path.realpath(place)) for place in places):
        return "package"
    searched = variables.get("LD_LIBRARY_PATH", "").split(":")
    lies_in = os.path.realpath(os.path.dirname(file))
    named = any(s and os.path.realpath(s) == lies_in for s in searched)
    return "search path" if named else "system"


def _version(file: str, folder: Path) -> str | None:
    """Of the package that a file belongs to, else what the file's own name says."""
    if not file:
        return None
    part = re.search(r"/nvidia/(\w+)/lib/[^/]+$", file)
    if part and Path(file).is_relative_to(folder):
        name = part[1].replace("_", "-")
        return packages.installed(rf"nvidia-{name}(-cu\d+)?", folder)
    number = re.search(r"\.so\.(\d+(?:\.\d+)+)$", os.path.realpath(file))
    return number[1] if number else None
