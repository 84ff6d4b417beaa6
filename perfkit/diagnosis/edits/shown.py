"""The one place that a cause is about, where what to write there is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.edits.table import (
    Unsure,
    datasets,
    is_serial,
    made_by,
    only,
    pipeline_of,
    stages_of,
    sure,
)
from perfkit.diagnosis.hints.names import called

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from perfkit.diagnosis.edits.places import Places
    from perfkit.findings.diagnosis import Cause


def shown(places: Places, cause: Cause) -> ast.AST | None:
    """The one place that a cause is about, where what to write there is open."""
    try:
        return _SHOWN[cause.cause](places, cause) if cause.cause in _SHOWN else None
    except (Unsure, LookupError):
        return None


def _python(places: Places, _: Cause) -> ast.AST:
    """What runs Python for each element."""
    ways = pipeline_of(places).get("python", ())
    calls = [c for c in places.code.calls if called(c) in ways]
    own = datasets(places) if "PyDataset" in ways else []
    found: list[ast.AST] = [*calls, *own]
    (one,) = only(found)
    return one


def _retraced(places: Places, _: Cause) -> ast.AST:
    """The function that is traced anew."""
    names = {name.split(".")[-1] for name in places.facts.get("retraced") or ()}
    defined = [f for f in places.code.functions if getattr(f, "name", "") in names]
    (one,) = only(defined)
    return one


def _callback(places: Places, cause: Cause) -> ast.AST:
    """The class of a callback."""
    (one,) = only([c for c in places.code.classes if cause.swap == f"without {c.name}"])
    return one


def _reader(places: Places, _: Cause) -> ast.AST:
    """What reads records out of files."""
    reads = [at for at, one in enumerate(stages_of(places)) if one["records"]]
    return sure(places.stages.get(reads[0] if reads else -1))


def _data(places: Places, _: Cause) -> ast.AST | None:
    return places.fit.data if places.fit else None


def _fit(places: Places, _: Cause) -> ast.AST | None:
    return places.fit.within if places.fit else None


def _serial(places: Places, _: Cause) -> ast.AST | None:
    """The first stage that works on one element at a time."""
    serial = [at for at, one in enumerate(stages_of(places)) if is_serial(one)]
    return places.stages.get(serial[0] if serial else -1)


def _kept(places: Places, _: Cause) -> ast.AST | None:
    """What makes that which could be kept."""
    return made_by(places, sure(pipeline_of(places).get("cache"))["after"])


_SHOWN: dict[str, Callable[[Places, Cause], ast.AST | None]] = {
    "callback": _callback,
    "epoch-boundary": _data,
    "input-bound": _data,
    "no-cache": _kept,
    "no-prefetch": _data,
    "python-input": _python,
    "retracing": _retraced,
    "serial-map": _serial,
    "slow-read": _reader,
    "step-overhead": lambda places, _: places.compile,
    "validation": _fit,
    "xla": lambda places, _: places.compile,
}
