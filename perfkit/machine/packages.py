"""Which packages are installed, and which TensorFlow is it? Read, never imported."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.machine.files import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.machine.record import Build

# What a reader of a finding needs to know, and what the GPU's libraries come from.
_NAMED = re.compile(
    r"perfkit|tensorflow(-\w+)*|tf-nightly(-\w+)*|(intel|nvidia)-tensorflow|keras"
    r"|tf-keras|jax|torch|numpy|scipy|pandas|psutil|jupyterlab|ipykernel|nvidia-ml-py"
    r"|nvidia-(cuda-runtime|cuda-nvcc|cuda-nvrtc|cuda-cupti|cudnn|cublas|cufft|curand"
    r"|cusolver|cusparse|nccl|nvjitlink)(-cu\d+)?"
)
# Those that may bring a module of the name tensorflow.
_TENSORFLOW = re.compile(
    r"(tensorflow|tf-nightly)(-cpu|-gpu|-intel|-macos|-rocm|-cpu-aws|-aarch64)?"
    r"|(intel|nvidia)-tensorflow"
)
_DISTRIBUTION = re.compile(
    r"([A-Za-z0-9][\w.]{0,60})-([0-9][\w.+!]{0,40})(?:-py[\d.]+)?\.(?:dist|egg)-info",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class Built:
    """The TensorFlow that would be imported.

    Attributes:
        folder: The one that it is installed in; None where there is none.
        build: Which it is.
        packages: The distributions that brought it.
        cuda: Version it was built with, and so ``cudnn``.
        capabilities: Compute capabilities that it has kernels for.
    """

    folder: Path | None = None
    build: Build = "none"
    packages: tuple[str, ...] = ()
    cuda: str | None = None
    cudnn: str | None = None
    capabilities: tuple[str, ...] | None = None


def versions(folders: Sequence[str]) -> dict[str, str]:
    """The distributions that matter, as Python would find them.

    Under ``"tensorflow"`` stands the module of this name, whichever brought it.

    Args:
        folders: Where Python looks for packages, such as ``sys.path``.
    """
    found = dict[str, str]()
    for folder in folders:
        for name, version, _ in _distributions(Path(folder)):
            if _NAMED.fullmatch(name):
                found.setdefault(name, version)
    built = tensorflow(folders)
    by = [found[name] for name in built.packages if name in found]
    if built.folder and (version := by[0] if len(by) == 1 else _of_module(built)):
        found["tensorflow"] = version
    return dict(sorted(found.items()))


def keras_version(folders: Sequence[str]) -> str:
    """Of the Keras that Python would import; "" where there is none that says so."""
    for folder in map(Path, folders):
        for file in ("keras/src/version.py", "keras/__init__.py"):
            told = re.search(r'^__version__ = "([\d.]+)', text_of(folder / file), re.M)
            if told:
                return told[1]
    return ""


def installed(name: str, folder: Path) -> str | None:
    """The version of a distribution in one folder, by a pattern of its name."""
    found = (v for n, v, _ in _distributions(folder) if re.fullmatch(name, n))
    return next(found, None)


def tensorflow(folders: Sequence[str]) -> Built:
    """Say which TensorFlow Python would import."""
    for folder in map(Path, folders):
        module = folder / "tensorflow"
        if os.path.isfile(module / "__init__.py"):
            told = _build_info(text_of(module / "python/platform/build_info.py"))
            return Built(
                folder=folder,
                build=_build(told, folder),
                packages=tuple(_bringing(folder)),
                cuda=_word(told.get("cuda_version")),
                cudnn=_word(told.get("cudnn_version")),
                capabilities=_words(told.get("cuda_compute_capabilities")),
            )
        if os.path.isfile(folder / "tensorflow.py"):
            return Built(folder=folder, build="unknown")
    return Built()


def has(module: str, folders: Sequence[str]) -> bool:
    """Whether Python would find a package of this name."""
    return any(os.path.isfile(Path(f) / module / "__init__.py") for f in folders)


def _distributions(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Name, version and description of what is installed in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError):
        return
    for name in names:
        if found := _DISTRIBUTION.fullmatch(name):
            plain = re.sub(r"[-_.]+", "-", found[1]).lower()
            yield plain, found[2], folder / name


def _of_module(built: Built) -> str:
    """The version in TensorFlow's own headers; "" where they do not say it."""
    public = (built.folder or Path()) / "tensorflow/include/tensorflow/core/public"
    text = "".join(text_of(public / f"{kind}version.h") for kind in ("release_", ""))
    found = dict(re.findall(r"#define TF_(\w+)_VERSION (\d+)\b", text))
    parts = [found.get(part, "") for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts) if all(parts) else ""


def _bringing(folder: Path) -> Iterator[str]:
    found = [d for d in _distributions(folder) if _TENSORFLOW.fullmatch(d[0])]
    for name, _, described in found:
        files = text_of(described / "RECORD") if len(found) > 1 else ""
        # One that only asks for another, as on Windows, brings no file of its own.
        if not files or re.search(r"^tensorflow/__init__\.py,", files, re.MULTILINE):
            yield name


def _build(told: dict[str, Any], folder: Path) -> Build:
    if told.get("is_rocm_build") is True:
        return "rocm"
    if told.get("is_cuda_build") is True:
        return "cuda"
    if told.get("is_cuda_build") is not False:
        return "unknown"
    return "metal" if installed("tensorflow-metal", folder) else "cpu"


def _build_info(source: str) -> dict[str, Any]:
    """What the file that TensorFlow's build wrote holds, without running it."""
    made = re.search(r"OrderedDict\((\[.{0,20000}\])\)", source, re.DOTALL)
    try:
        told = dict(ast.literal_eval(made[1])) if made else {}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}
    return told


def _words(values: Any) -> tuple[str, ...] | None:
    words = [_word(value) for value in values] if isinstance(values, list) else []
    return tuple(word for word in words if word) or None


def _word(value: Any) -> str | None:
    text = str(value)
    return text if re.fullmatch(r"[\w.]{1,30}", text, re.ASCII) and value else None
