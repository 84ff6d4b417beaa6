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
# Long, of letters and digits mixed, without the marks that part words: a secret.
_SECRET = re.compile(
    r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|xox\w-)[\w-]{8,}"
    r"|(?<![\w-])(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{20,}(?![\w-])"
)
# A space belongs to the path unless a flag or another path follows it.
_PATH = re.compile(r"(?:~|\.{0,2}|\b[A-Za-z]:)[/\\](?:[^\s,:;=\"']| (?![-/\\]))*")
_HARDWARE_ID = re.compile(
    r"\b([0-9a-fA-F]{4})[0-9a-fA-F]{4}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
# A path in a sentence: in quotes, from a root, or to a file with an ending. Operations
# and devices of TensorFlow are none, nor is "images/s".
_DEVICE = r"(?!/(?:job|replica|task|device|CPU|GPU):)"
_PART = r"[^\s,:;=\"'`()\[\]{}<>|]"
_NAMED_PATH = re.compile(
    rf"(?<!\w)(?P<quote>[\"']){_DEVICE}[^\"'\n]*[/\\][^\"'\n]*(?P=quote)"
    rf"|(?<![\w.)\]}}])(?:~\w*|\.{{1,2}}|[A-Za-z]:)?{_DEVICE}[/\\](?=[\w.]){_PART}*"
    rf"(?: {_PART}*[/\\]{_PART}*)*"
    r"|(?<![\w/\\.-])[\w.-]+(?:[/\\][\w.-]+)*[/\\][\w.-]+\.[A-Za-z]\w{0,4}(?!\w)"
)
# As above; names of operations are long and hold a number or two.
_TOKEN = re.compile(
    r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|xox\w-)[\w-]{8,}"
    r"|(?<!\w)(?=(?:[A-Za-z]*\d){4})(?=\d*[A-Za-z])[A-Za-z0-9]{20,}(?!\w)"
)
_LONGEST, _LONGEST_SENTENCE = 160, 400
_NAMING = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER", "HOSTNAME")
_HOMES = ("HOME", "USERPROFILE")


def that_matter(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables that change speed, their values without paths, names or addresses.

    These names are words to leave out wherever they occur: the user's, the host's.
    """
    hidden = tuple(names)
    return {
        name: _SECRET.sub("<secret>", _HOST.sub("<address>", cleaned(value, hidden)))
        for name, value in sorted(environment.items())
        if _matters(name)
    }


def changed(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that matter and are not the same."""
    names = {name for name in (*now, *before) if _matters(name)}
    return tuple(sorted(n for n in names if now.get(n) != before.get(n)))


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


def cleaned(text: str, names: Iterable[str], longest: int = _LONGEST) -> str:
    """A text without paths, these names, addresses or what cannot be printed, cut."""
    text = _ADDRESS.sub("<address>", text)
    text = _PATH.sub(lambda found: _shortened(found[0]), text)
    text = _HARDWARE_ID.sub(r"\1...", text)
    for name in sorted(names, key=len, reverse=True):
        text = _hiding(name).sub("<name>", text) if name else text
    return _cut("".join(c if c.isprintable() else " " for c in text), longest)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def nameless(sentence: str) -> str:
    """What somebody's code said, as a file may hold it: without who and where they are.

    Paths, addresses, secrets, the names of user and host are left out; the name of a
    file alone stays, and so do TensorFlow's names of operations and devices.
    """
    text = _NAMED_PATH.sub(_without_path, _ADDRESS.sub("<address>", sentence))
    text = _TOKEN.sub("<secret>", _HARDWARE_ID.sub(r"\1...", text))
    for name in filter(None, (*own_names(), *named_in(os.environ))):
        whole = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
        text = re.sub(whole, "<name>", text, flags=re.IGNORECASE)
    return _cut(_HOST.sub("<address>", text), _LONGEST_SENTENCE)


def _without_path(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    return f"{quote}<path>{quote}"


def _matters(name: str) -> bool:
    return bool(_MATTERS.fullmatch(name)) and not _PRIVATE.search(name)


def _hiding(name: str) -> re.Pattern[str]:
    # A name of one or two letters occurs inside many words, which would be lost.
    whole = rf"\b{re.escape(name)}\b" if len(name) < 3 else re.escape(name)
    return re.compile(whole, re.IGNORECASE)


def _shortened(path: str) -> str:
    """Hide a path; of an installed one keep the last part, which names a version."""
    installed = path.startswith(("/usr/", "/opt/", "/lib/"))
    last = path.rstrip("/").rpartition("/")[2]
    return f"<path>/{last}" if installed else "<path>"
