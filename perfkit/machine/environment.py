"""Which environment variables matter for speed, without telling whose machine it is."""

import getpass
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_MATTERS = re.compile(
    r"(TF|CUDA|CUDNN|CUBLAS|NCCL|XLA|OMP|GOMP|KMP|MKL|OPENBLAS|ONEDNN|DNNL|MALLOC)_\w+"
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
