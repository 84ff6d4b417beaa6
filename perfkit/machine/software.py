"""What do the programs run on? The kind of system, the environment, Keras' choice."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import MissingPartError, need
from perfkit.machine import packages
from perfkit.machine.files import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfkit.machine.record import Platform

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
    """What kind of system this is.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        variables: The environment.
        kind: What a system without ``proc`` calls itself, such as ``"Darwin"``.
        container: Whether it is seen from a container.
    """
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
    if not packages.has("keras", folders):
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

    Args:
        variables: The environment that a training will have.

    Raises:
        MissingPartError: What is here instead, and the remedy.
    """
    need("tensorflow", "A training", "tensorflow")
    version = packages.keras_version(sys.path) or "3"
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

    Args:
        prefix: The folder of the environment that this Python belongs to.
        variables: The environment.
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
