"""What programs run on: variables, packages, the kind of system, Keras' choice.

Nothing here tells whose machine it is: what a file may hold is without names, paths,
addresses and secrets.
"""

import ast
import getpass
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from perfkit.errors import MissingPartError, need
from perfkit.machine.limits import text_of
from perfkit.machine.record import Build, Platform, Software

_MATTERS = re.compile(
    # A log level changes no speed, and the lab sets one.
    r"(TF(?!_CPP_MIN_LOG_LEVEL)|CUDA|CUDNN|CUBLAS|NCCL|XLA|OMP|GOMP|KMP|MKL|OPENBLAS|ONEDNN|DNNL|MALLOC)_\w+"
    r"|KERAS_BACKEND|NVIDIA_(TF32_OVERRIDE|VISIBLE_DEVICES|DRIVER_CAPABILITIES)"
    r"|LD_PRELOAD|LD_LIBRARY_PATH"
)
# Terraform's variables begin with TF_ too and hold secrets; TF_CONFIG holds addresses.
_PRIVATE = re.compile(
    r"TF_(VAR|TOKEN|CLI|HTTP|CONFIG|WORKSPACE|REGISTRY|DATA_DIR|LOG|REATTACH|STATE)"
    r"|TOKEN|SECRET|PASSW|CREDENTIAL|_KEY\b|_API\b|_AUTH\b"
)
_ADDRESS = re.compile(r"\w+://\S*")
# The same without a scheme: a number of the network, or a name with dots and a port.
# A version has no fourth number, a library no port.
_HOST = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}|[A-Za-z][\w-]*(?:\.[\w-]+)+(?=:\d))"
    r"(?::\d{1,5})?(?![\w.])"
    r"|\[[0-9a-fA-F:]*:[0-9a-fA-F:.]*\](?::\d{1,5})?"
)
_HARDWARE_ID = re.compile(
    r"\b([0-9a-fA-F]{4})[0-9a-fA-F]{4}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
# In a fact any slash belongs to a path, and a space too unless a flag or another path
# follows it; a long word of letters and digits is a secret.
_PATH = re.compile(
    r"(?P<quote>)(?:~|\.{0,2}|\b[A-Za-z]:)[/\\](?:[^\s,:;=\"']| (?![-/\\]))*"
)
_PREFIXED_SECRET = r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|xox\w-)[\w-]{8,}"
_SECRET = re.compile(
    rf"{_PREFIXED_SECRET}"
    r"|(?<![\w-])(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{20,}(?![\w-])"
)
# A path in a sentence: in quotes, from a root, or to a file with an ending. Operations
# and devices of TensorFlow are none, nor is "images/s".
_DEVICE = r"(?!/(?:job|replica|task|device|CPU|GPU):)"
_PART = r"[^\s,:;=\"'`()\[\]{}<>|]"
_PATH_IN_SENTENCE = re.compile(
    rf"(?<!\w)(?P<quote>[\"']){_DEVICE}[^\"'\n]*[/\\][^\"'\n]*(?P=quote)"
    rf"|(?<![\w.)\]}}])(?:~\w*|\.{{1,2}}|[A-Za-z]:)?{_DEVICE}[/\\](?=[\w.]){_PART}*"
    rf"(?: {_PART}*[/\\]{_PART}*)*"
    r"|(?<![\w/\\.-])[\w.-]+(?:[/\\][\w.-]+)*[/\\][\w.-]+\.[A-Za-z]\w{0,4}(?!\w)"
)
# Names of operations are long and hold a number or two.
_SECRET_IN_SENTENCE = re.compile(
    rf"{_PREFIXED_SECRET}"
    r"|(?<!\w)(?=(?:[A-Za-z]*\d){4})(?=\d*[A-Za-z])[A-Za-z0-9]{20,}(?!\w)"
)
_INSTALLED = ("/usr/", "/opt/", "/lib/")
_LONGEST_FACT, _LONGEST_SENTENCE = 160, 400
_NAMING = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER", "HOSTNAME")
_HOMES = ("HOME", "USERPROFILE")


def that_matter(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables that change speed, their values without paths, names or addresses.

    These names are words to leave out wherever they occur: the user's, the host's.
    """
    hidden = tuple(names)
    return {
        name: anonymize(value, hidden, _LONGEST_FACT, is_fact=True)
        for name, value in sorted(environment.items())
        if _matters(name)
    }


def changed(current: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that matter and are not the same."""
    names = {name for name in (*current, *before) if _matters(name)}
    return tuple(sorted(n for n in names if current.get(n) != before.get(n)))


def named_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Words in the environment that would tell whose machine this is."""
    homes = [re.split(r"[/\\]", environment.get(name, ""))[-1] for name in _HOMES]
    return (*(environment.get(name, "") for name in _NAMING), *homes)


def own_names() -> tuple[str, ...]:
    """Words that would tell whose machine this is."""
    host = platform.node()
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a user number that has no name.
        user = ""
    return (user, _home().name, host, host.partition(".")[0])


def is_named(folder: Path) -> bool:
    """Whether a folder has a name to be told; that of a home is its user's."""
    return bool(folder.name) and folder not in (_home(), _home().parent)


def _home() -> Path:
    # Unlike Path.home() it is some folder where the user has none.
    return Path(os.path.expanduser("~"))


def anonymize(
    text: str,
    names: Iterable[str] = (),
    longest: int = _LONGEST_SENTENCE,
    *,
    is_fact: bool = False,
) -> str:
    """A text as a file may hold it: without who and where its user is, cut.

    Paths, addresses and secrets are left out, and names: those of this user and host
    where none are given. A sentence keeps TensorFlow's names of operations and devices;
    a fact, such as the value of a variable, holds none.
    """
    hidden = tuple(names) or (*own_names(), *named_in(os.environ))
    path, secret = _PATH_IN_SENTENCE, _SECRET_IN_SENTENCE
    if is_fact:
        path, secret = _PATH, _SECRET
    text = path.sub(_hide_path, _ADDRESS.sub("<address>", text))
    text = secret.sub("<secret>", _HARDWARE_ID.sub(r"\1...", text))
    text = _HOST.sub("<address>", hide_names(text, hidden, inside_words=is_fact))
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def hide_names(text: str, names: Iterable[str], *, inside_words: bool = True) -> str:
    """The text without these names, those of one or two letters as whole words only."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        pattern = re.escape(name)
        if not inside_words or len(name) < 3:
            pattern = rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
        text = re.sub(pattern, "<name>", text, flags=re.IGNORECASE)
    return text


def _hide_path(match: re.Match[str]) -> str:
    """Hide a path; of an installed one keep the last part, which names a version."""
    quote, path = match["quote"] or "", match[0].strip("\"'")
    last = path.rstrip("/").rpartition("/")[2]
    ending = f"/{last}" if path.startswith(_INSTALLED) else ""
    return f"{quote}<path>{ending}{quote}"


def _matters(name: str) -> bool:
    return bool(_MATTERS.fullmatch(name)) and not _PRIVATE.search(name)


# Those that may bring a module of the name tensorflow.
_TENSORFLOWS = (
    *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel"),
    *("tensorflow-macos", "tensorflow-rocm", "tensorflow-cpu-aws"),
    *("tf-nightly", "tf-nightly-cpu", "intel-tensorflow", "nvidia-tensorflow"),
)
# What a reader of a finding needs to know, and what brings a GPU's libraries.
_NAMED = (
    *_TENSORFLOWS,
    *("perfkit", "keras", "tf-keras", "tensorflow-metal", "numpy", "jax", "torch"),
    *(
        f"nvidia-{library}{cuda}"
        for library in ("cuda-runtime", "cudnn")
        for cuda in ("", "-cu11", "-cu12", "-cu13")
    ),
)


def versions(folders: Sequence[str]) -> dict[str, str]:
    """The distributions that matter, as Python would find them in these folders.

    Under ``"tensorflow"`` stands the module of this name, whichever brought it.
    """
    installed = {name: _distribution(name, folders) for name in _NAMED}
    by_name = {
        name: version
        for name, distribution in installed.items()
        if distribution and (version := _version(distribution))
    }
    bringing = [by_name[n] for n in tensorflow(folders).packages if n in by_name]
    if bringing:
        by_name["tensorflow"] = bringing[0]
    return dict(sorted(by_name.items()))


def tensorflow(folders: Sequence[str]) -> Software:
    """Say which TensorFlow Python would import; nothing is known of the system."""
    spec = PathFinder.find_spec("tensorflow", list(folders))
    if spec is None or spec.origin is None:
        return Software(build="none")
    if not spec.submodule_search_locations:
        return Software(build="unknown")
    module = Path(spec.origin).parent
    info = _build_info(text_of(module / "python/platform/build_info.py"))
    return Software(
        build=_build(info, module.parent),
        packages=tuple(
            name for name in _TENSORFLOWS if _distribution(name, [str(module.parent)])
        ),
        cuda=_word(info.get("cuda_version")),
        capabilities=_words(info.get("cuda_compute_capabilities")),
    )


def _distribution(name: str, folders: Sequence[str]) -> metadata.Distribution | None:
    return next(iter(metadata.distributions(name=name, path=list(folders))), None)


def _version(distribution: metadata.Distribution) -> str | None:
    """The version in a distribution's description; None where that is spoiled."""
    try:
        version = distribution.version or ""
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return version if re.fullmatch(r"[\w.!+-]{1,60}", version) else None


def _build(info: Mapping[str, Any], folder: Path) -> Build:
    if info.get("is_rocm_build") is True:
        return "rocm"
    if info.get("is_cuda_build") is True:
        return "cuda"
    if info.get("is_cuda_build") is not False:
        return "unknown"
    return "metal" if _distribution("tensorflow-metal", [str(folder)]) else "cpu"


def _build_info(source: str) -> dict[str, Any]:
    """The values in the file that TensorFlow's build wrote, without running it."""
    match = re.search(r"OrderedDict\((\[.{0,20000}\])\)", source, re.DOTALL)
    try:
        return dict(ast.literal_eval(match[1])) if match else {}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}


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
LEGACY, _YES = "TF_USE_LEGACY_KERAS", ("1", "true", "True")
_CONTAINER_GROUPS = re.compile(r"docker|kubepods|containerd|libpod|podman|/lxc")


def kind_of_system(
    root: Path, variables: Mapping[str, str], kind: str, *, container: bool
) -> Platform:
    """What kind of system this is; without ``proc`` it is what it calls itself."""
    if not (root / "proc").is_dir():
        without: dict[str, Platform] = {"Darwin": "macos", "Windows": "windows"}
        return without.get(kind, "other")
    if is_wsl(root, variables):
        return "wsl2"
    return "container" if container else "linux"


def is_wsl(root: Path, variables: Mapping[str, str]) -> bool:
    """Whether this is a Windows Subsystem for Linux."""
    release = text_of(root / "proc/sys/kernel/osrelease").lower()
    # A kernel that its user built may have any name.
    return "microsoft" in release or "WSL_DISTRO_NAME" in variables


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


def keras_backend(variables: Mapping[str, str]) -> str:
    """What Keras will compute with."""
    home = variables.get("HOME") or variables.get("USERPROFILE") or ""
    folder = variables.get("KERAS_HOME") or os.path.join(home, ".keras")
    try:
        settings = json.loads(text_of(Path(folder) / "keras.json"))
    except (ValueError, RecursionError):
        settings = None
    configured = settings.get("backend") if isinstance(settings, dict) else None
    for backend in (variables.get("KERAS_BACKEND"), configured):
        if isinstance(backend, str) and re.fullmatch(r"\w{1,30}", backend, re.ASCII):
            return backend
    return "tensorflow"


# What Keras 3 trains on; of several that are there, the first is taken.
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
# What Keras trains on, where it is Keras 2: that has one backend.
KERAS_2 = "Keras 2"


def is_legacy(variables: Mapping[str, str]) -> bool:
    """Whether ``tf.keras`` is ``tf_keras``, which is Keras 2."""
    return variables.get(LEGACY) in _YES


def trains_on(variables: Mapping[str, str], installed: Mapping[str, str]) -> str:
    """What Keras computes with, or ``KERAS_2``; ``installed`` is of ``versions``."""
    is_old = is_legacy(variables) or _is_keras_2(installed.get("keras", "3"))
    return KERAS_2 if is_old else keras_backend(variables)


def _is_keras_2(version: str) -> bool:
    return version.startswith(("0.", "1.", "2."))


def check_trains(variables: Mapping[str, str] = os.environ) -> None:
    """Refuse to train where there is no Keras 3 on TensorFlow; nothing is imported."""
    backend = keras_backend(variables)
    if backend != "tensorflow" and not is_legacy(variables):
        raise MissingPartError(
            f"Keras trains with {backend} here, and this looks into TensorFlow's "
            "graphs: set KERAS_BACKEND=tensorflow, if the training runs on it, or "
            "compare both with `perfkit race`."
        )
    need("tensorflow", "A training", "tensorflow")
    version = versions(sys.path).get("keras", "3")
    if _is_keras_2(version):
        raise MissingPartError(
            f"This environment has Keras {version}, but perfkit measures only Keras 3: "
            "install TensorFlow 2.16 or later, which brings it."
        )
    if is_legacy(variables):
        raise MissingPartError(
            f"{LEGACY}={variables[LEGACY]} makes tf.keras Keras 2, but perfkit "
            "measures only Keras 3: unset it, if the training runs without it."
        )
