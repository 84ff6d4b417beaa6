"""What do the programs run on? The kind of system, the environment, Keras' choice."""

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import MissingPartError, need
from perfkit.machine.environment import cleaned
from perfkit.machine.limits import text_of
from perfkit.machine.record import Build, Library, Platform

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
    """The TensorFlow that would be imported, with fields as ``Software`` has them.

    It is installed in ``folder``, which is None where there is none.
    """

    folder: Path | None = None
    build: Build = "none"
    packages: tuple[str, ...] = ()
    cuda: str | None = None
    cudnn: str | None = None
    capabilities: tuple[str, ...] | None = None


def versions(folders: Sequence[str]) -> dict[str, str]:
    """The distributions that matter, as Python would find them in these folders.

    Under ``"tensorflow"`` stands the module of this name, whichever brought it.
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


_CONTAINER_MARKS = (".dockerenv", "run/.containerenv", ".singularity.d/Singularity")
_CONTAINER_VARIABLES = (
    "container",
    "APPTAINER_CONTAINER",
    "SINGULARITY_CONTAINER",
    "KUBERNETES_SERVICE_HOST",
)
# As TensorFlow reads it.
_LEGACY, _YES = "TF_USE_LEGACY_KERAS", ("1", "true", "True")
_CONTAINER_GROUPS = re.compile(r"docker|kubepods|containerd|libpod|podman|/lxc")


def platform(
    root: Path, variables: Mapping[str, str], kind: str, *, container: bool
) -> Platform:
    """What kind of system this is; without ``proc`` it is what it calls itself."""
    if not (root / "proc").is_dir():
        without: dict[str, Platform] = {"Darwin": "macos", "Windows": "windows"}
        return without.get(kind, "other")
    if wsl := wsl_version(root, variables):
        return "wsl1" if wsl == 1 else "wsl2"
    return "container" if container else "linux"


def wsl_version(root: Path, variables: Mapping[str, str]) -> int | None:
    """Which Windows Subsystem for Linux this is; None where it is none.

    A kernel that its user built may have any name; the second one is a kernel of its
    own and can run such a one, the first cannot.
    """
    release = text_of(root / "proc/sys/kernel/osrelease").lower()
    version = text_of(root / "proc/version").lower()
    if "microsoft" in release or "microsoft" in version:
        old = release.startswith("4.4.") and "wsl2" not in release
        return 1 if old else 2
    interop = text_of(root / "proc/sys/fs/binfmt_misc/WSLInterop")
    return 2 if interop or "WSL_DISTRO_NAME" in variables else None


def in_container(root: Path, variables: Mapping[str, str]) -> bool:
    """Whether this process runs in a container."""
    if any(variables.get(name) for name in _CONTAINER_VARIABLES):
        return True
    if _CONTAINER_GROUPS.search(text_of(root / "proc/self/cgroup")):
        return True
    # A virtual machine made from a container's files keeps its marks; but its kernel's
    # own threads are seen, which nothing inside a container sees.
    own_kernel = text_of(root / "proc/2/comm") == "kthreadd"
    return not own_kernel and any(
        os.path.exists(root / mark) for mark in _CONTAINER_MARKS
    )


def keras_backend(variables: Mapping[str, str], folders: Sequence[str]) -> str | None:
    """What Keras will compute with; None where there is no Keras."""
    if not has("keras", folders):
        return None
    home = variables.get("HOME") or variables.get("USERPROFILE") or ""
    folder = variables.get("KERAS_HOME") or os.path.join(home, ".keras")
    try:
        said = json.loads(text_of(Path(folder) / "keras.json"))
    except (ValueError, RecursionError):
        said = None
    configured = said.get("backend") if isinstance(said, dict) else None
    for chosen in (variables.get("KERAS_BACKEND"), configured):
        if isinstance(chosen, str) and re.fullmatch(r"\w{1,30}", chosen, re.ASCII):
            return chosen
    return "tensorflow"


def check_trains(variables: Mapping[str, str] = os.environ) -> None:
    """Refuse to train where there is no Keras 3 on TensorFlow; nothing is imported.

    Raises:
        MissingPartError: What is here instead, and the remedy.
    """
    need("tensorflow", "A training", "tensorflow")
    version = keras_version(sys.path) or "3"
    if version.startswith(("0.", "1.", "2.")):
        raise MissingPartError(
            f"This environment has Keras {version}, and perfkit measures Keras 3: "
            "install TensorFlow 2.16 or later, which brings it."
        )
    if variables.get(_LEGACY) in _YES:
        raise MissingPartError(
            f"{_LEGACY}={variables[_LEGACY]} makes tf.keras Keras 2, and perfkit "
            "measures Keras 3: unset it, if the training runs without."
        )
    backend = keras_backend(variables, sys.path)
    if backend not in (None, "tensorflow"):
        raise MissingPartError(
            f"Keras trains with {backend} here, and perfkit measures TensorFlow: set "
            "KERAS_BACKEND=tensorflow, if the training runs on it."
        )


def elsewhere(prefix: str, variables: Mapping[str, str]) -> str:
    """Why this Python is not the active environment's, in a sentence; "" where it is.

    This Python's environment lies in the folder ``prefix``.
    """
    active = {"virtual environment": variables.get("VIRTUAL_ENV")}
    # Conda's installer makes its base active everywhere, which nobody chose.
    if variables.get("CONDA_DEFAULT_ENV") != "base":
        active["conda environment"] = variables.get("CONDA_PREFIX")
    wrong = [kind for kind, place in active.items() if place]
    places = [os.path.realpath(place) for place in active.values() if place]
    if not wrong or os.path.realpath(prefix) in places:
        return ""
    return (
        f"The {wrong[0]} that is active is another one than this Python belongs to: "
        "what is installed there is not used here."
    )


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

    The names are words to leave out of what the loader says.
    """
    needed = _NEEDED.get((built.cuda or "").split(".")[0], ())
    folder = built.folder
    if built.build != "cuda" or not needed or not built.cudnn or folder is None:
        return tuple
    needed = (*needed, f"libcudnn.so.{built.cudnn.split('.')[0]}")
    script = str(Path(__file__).with_name("loader.py"))
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
        version=library_version(file, folder) if file else None,
        origin=library_origin(file, folder, variables) if file else None,
        problem=problem,
    )


def library_origin(file: str, folder: Path | None, variables: Mapping[str, str]) -> str:
    """Where a file of a library comes from, as ``Library.origin`` has it.

    The folder is that of the packages; None where it lies in none.
    """
    places = [folder] if folder else []
    # What conda installs for the environment lies beside Python, not in its packages.
    places += [up for p in places for up in p.parents if (up / "conda-meta").is_dir()][
        :1
    ]
    real = os.path.realpath(file)
    if any(Path(real).is_relative_to(os.path.realpath(place)) for place in places):
        return "package"
    searched = variables.get("LD_LIBRARY_PATH", "").split(":")
    lies_in = os.path.realpath(os.path.dirname(file))
    named = any(s and os.path.realpath(s) == lies_in for s in searched)
    return "search path" if named else "system"


def library_version(file: str, folder: Path | None) -> str | None:
    """Of the package that a file belongs to, else what the file's own name says."""
    part = re.search(r"/nvidia/(\w+)/lib/[^/]+$", file)
    if part and folder and Path(file).is_relative_to(folder):
        name = part[1].replace("_", "-")
        return installed(rf"nvidia-{name}(-cu\d+)?", folder)
    number = re.search(r"\.so\.(\d+(?:\.\d+)+)$", os.path.realpath(file))
    return number[1] if number else None
