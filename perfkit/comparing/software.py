"""In what the variables and the libraries of two machines differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.comparing.differing import MachineDiffers
from perfkit.comparing.telling import CORES, GPU, KERNELS, PYTHON, THREADS, words
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.comparing.differing import Side
    from perfkit.machine.record import Machine

_EVERYTHING = ("input", "dispatch", "transfer", "compute")
# Variables by the start of their names: what they can slow, and which rungs show it.
_VARIABLES = {
    "TF_ENABLE_ONEDNN_OPTS": (("compute",), KERNELS),
    "TF_NUM_": (("input", "compute"), THREADS),
    "OMP_": (("input",), CORES),
    "TF_XLA": (("compute", "dispatch"), ""),
    "XLA": (("compute", "dispatch"), ""),
    "TF_DETERMINISTIC": (("input", "compute"), ""),
    "TF_GPU": (("compute", "input"), GPU),
    "CUDA": (("compute", "transfer"), GPU),
    "NVIDIA": (("compute",), GPU),
    "TF_CUDNN": (("compute",), GPU),
    "ONEDNN": (("compute",), KERNELS),
    "DNNL": (("compute",), KERNELS),
}
_OFF = {"0", "false", "off", "no"}
_LIBRARIES = {
    "tensorflow": (_EVERYTHING, KERNELS),
    "keras": (("dispatch", "compute"), ""),
    "numpy": ((), ""),
}


def variables(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    """Those that are set otherwise; those that can slow something come first."""
    one, other = a.environment, b.environment
    names = [n for n in dict.fromkeys((*one, *other)) if one.get(n) != other.get(n)]
    told = [(name, *_variable(name)) for name in names]
    for name, parts, sign in sorted(told, key=lambda found: not found[1]):
        yield MachineDiffers(
            what=plain(name, 60),
            a=plain(one.get(name, "not set"), 80),
            b=plain(other.get(name, "not set"), 80),
            topic=plain(name, 60),
            parts=parts,
            slower=_switched_off(name, one.get(name), other.get(name)),
            sign=sign,
        )


def libraries(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    """Versions; TensorFlow's and Keras' come first."""
    names = dict.fromkeys((*_LIBRARIES, *a.versions, *b.versions))
    for name in names:
        parts, sign = _LIBRARIES.get(name, ((), ""))
        mine, theirs = (m.versions.get(name, "not installed") for m in (a, b))
        yield from words(plain(name, 60), mine, theirs, name, parts, sign=sign)
    builds = [m.software.build if m.software else None for m in (a, b)]
    yield from words("TensorFlow build", builds[0], builds[1], "build", ())
    yield from words("Python", a.python, b.python, "Python", ("dispatch",), sign=PYTHON)
    yield from words("system", a.system, b.system, "system", ())


def _variable(name: str) -> tuple[tuple[str, ...], str]:
    found = (told for start, told in _VARIABLES.items() if name.startswith(start))
    return next(found, ((), ""))


def _switched_off(name: str, a: str | None, b: str | None) -> Side:
    """Who turned the faster kernels off; of other variables the records do not say."""
    if name != "TF_ENABLE_ONEDNN_OPTS":
        return ""
    off = [value is not None and value.strip().lower() in _OFF for value in (a, b)]
    return "" if off[0] == off[1] else "A" if off[0] else "B"
