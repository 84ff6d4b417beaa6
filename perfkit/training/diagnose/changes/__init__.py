"""The changes, a file per kind: each says from the facts which of them apply."""

from collections.abc import Callable, Iterator

from perfkit.training.diagnose.change import Change, Untested
from perfkit.training.diagnose.changes import (
    lines,
    model,
    observers,
    padding,
    pipeline,
    resident,
)
from perfkit.training.diagnose.facts import Facts

# In the order in which they are tried where time is short.
_KINDS: tuple[Callable[[Facts], Iterator[Change | Untested]], ...] = (
    resident.resident,
    model.left_off,
    resident.loops,
    model.execution,
    observers.observers,
    observers.epochs,
    lines.lines,
    # In the order in which they can be applied one after another.
    pipeline.untold,
    pipeline.per_example,
    pipeline.late_shuffle,
    pipeline.serial_map,
    pipeline.slow_read,
    pipeline.python_input,
    pipeline.no_cache,
    padding.changes,
    pipeline.no_prefetch,
    pipeline.host_to_device,
    model.batch,
    model.precisions,
    model.retracing,
)


def applicable(facts: Facts) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Return the changes that apply, and why each other cause is left out."""
    yielded = (candidate for kind in _KINDS for candidate in kind(facts))
    candidates = list(resident.without_fit(yielded, facts))
    changes = tuple(c for c in candidates if isinstance(c, Change))
    return changes, {c.cause: c.reason for c in candidates if isinstance(c, Untested)}
