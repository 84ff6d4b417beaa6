"""The one place that a cause is about, where what to write there is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.edits.places import Unsure, only, sure
from perfkit.diagnosis.edits.table import is_serial
from perfkit.diagnosis.names import is_dataset

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from perfkit.diagnosis.edits.places import Places
    from perfkit.findings.diagnosis import Cause


def shown(places: Places, cause: Cause) -> ast.AST | None:
    """The one place that a cause is about; None where it is not certain."""
    try:
        return _SHOWN[cause.cause](places, cause)
    except (Unsure, LookupError):
        return None


def _python(places: Places, _: Cause) -> ast.AST:
    """What runs Python for each element."""
    ways = places.pipeline.get("python", ())
    own = filter(is_dataset, places.code.classes if "PyDataset" in ways else ())
    return only([*places.code.named(*ways), *own])


def _retraced(places: Places, _: Cause) -> ast.AST:
    """The function that is traced anew."""
    names = {name.split(".")[-1] for name in places.facts.get("retraced") or ()}
    return only([f for f in places.code.functions if getattr(f, "name", "") in names])


def _callback(places: Places, cause: Cause) -> ast.AST:
    """The class of a callback."""
    return only([c for c in places.code.classes if cause.swap == f"without {c.name}"])


def _reader(places: Places, _: Cause) -> ast.AST:
    """What reads records out of files."""
    reads = [at for at, one in enumerate(places.ran) if one["records"]]
    return places.stages[reads[0]]


def _serial(places: Places, _: Cause) -> ast.AST:
    """The first stage that works on one element at a time."""
    serial = [at for at, one in enumerate(places.ran) if is_serial(one)]
    return places.stages[serial[0]]


def _kept(places: Places, _: Cause) -> ast.AST:
    """What makes that which could be kept."""
    return places.made_by(sure(places.pipeline.get("cache"))["after"])


_SHOWN: dict[str, Callable[[Places, Cause], ast.AST | None]] = {
    "callback": _callback,
    "epoch-boundary": lambda places, _: places.data,
    "input-bound": lambda places, _: places.data,
    "no-cache": _kept,
    "no-prefetch": lambda places, _: places.data,
    "python-input": _python,
    "retracing": _retraced,
    "serial-map": _serial,
    "slow-read": _reader,
    "step-overhead": lambda places, _: places.compile,
    "validation": lambda places, _: places.fit.within if places.fit else None,
    "xla": lambda places, _: places.compile,
}
