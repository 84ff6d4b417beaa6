"""Which environment variables matter for speed, without telling whose machine it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MATTERS = re.compile(
    r"(TF|CUDA|CUDNN|CUBLAS|NCCL|XLA|OMP|GOMP|KMP|MKL|OPENBLAS|ONEDNN|DNNL|MALLOC)_\w+"
    r"|KERAS_BACKEND|NVIDIA_(TF32_OVERRIDE|VISIBLE_DEVICES)|LD_PRELOAD"
)
# Terraform's variables begin with TF_ too and hold secrets; TF_CONFIG holds addresses.
_PRIVATE = re.compile(
    r"TF_(VAR|TOKEN|CLI|HTTP|CONFIG|WORKSPACE|REGISTRY|DATA_DIR|LOG|REATTACH|STATE)"
    r"|TOKEN|SECRET|PASSW|CREDENTIAL|_KEY\b"
)
_ADDRESS = re.compile(r"\w+://\S*")
# A space belongs to the path unless a flag or another path follows it.
_PATH = re.compile(r"(?:~|\.{0,2}|\b[A-Za-z]:)[/\\](?:[^\s,:;=\"']| (?![-/\\]))*")
_HARDWARE_ID = re.compile(
    r"\b([0-9a-fA-F]{4})[0-9a-fA-F]{4}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_LONGEST = 160


def that_matter(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables that change speed, their values without paths, names or addresses.

    Args:
        environment: Such as ``os.environ``.
        names: Words to leave out wherever they occur: the user's and the host's name.
    """
    hidden = [_hiding(n) for n in sorted(names, key=len, reverse=True) if n]
    return {
        name: _cleaned(value, hidden)
        for name, value in sorted(environment.items())
        if _MATTERS.fullmatch(name) and not _PRIVATE.search(name)
    }


def _hiding(name: str) -> re.Pattern[str]:
    # A name of one or two letters occurs inside many words, which would be lost.
    whole = rf"\b{re.escape(name)}\b" if len(name) < 3 else re.escape(name)
    return re.compile(whole, re.IGNORECASE)


def _cleaned(value: str, hidden: list[re.Pattern[str]]) -> str:
    text = _ADDRESS.sub("<address>", value)
    text = _PATH.sub(lambda found: _shortened(found[0]), text)
    text = _HARDWARE_ID.sub(r"\1...", text)
    for name in hidden:
        text = name.sub("<name>", text)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _shortened(path: str) -> str:
    """Hide a path; of an installed one keep the last part, which names a version."""
    installed = path.startswith(("/usr/", "/opt/", "/lib/"))
    last = path.rstrip("/").rpartition("/")[2]
    return f"<path>/{last}" if installed else "<path>"
