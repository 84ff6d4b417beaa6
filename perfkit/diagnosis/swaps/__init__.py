"""The swaps, a file per kind: each says from the facts which of them apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps import (
    batch,
    epochs,
    execution,
    loops,
    observers,
    padding,
    pipeline,
    pipeline_order,
    pipeline_python,
    pipeline_reading,
    precision,
    resident,
    retracing,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.diagnosis.facts import Facts

# In the order in which they are tried where time is short.
_KINDS: tuple[Callable[[Facts], Iterator[Swap | Untested]], ...] = (
    resident.swaps,
    settings.left_off,
    loops.swaps,
    execution.swaps,
    observers.swaps,
    epochs.swaps,
    # In the order in which they can be applied one after another.
    pipeline.untold,
    precision.wide_data,
    pipeline_order.per_example,
    pipeline_order.late_shuffle,
    pipeline.serial_map,
    pipeline_reading.slow_read,
    pipeline_python.python_input,
    pipeline.no_cache,
    padding.swaps,
    pipeline.no_prefetch,
    settings.any_order,
    pipeline.host_to_device,
    batch.swaps,
    precision.swaps,
    retracing.swaps,
)


def applicable(facts: Facts) -> tuple[tuple[Swap, ...], dict[str, str]]:
    """Say which swaps apply, and of each cause that was left out why."""
    yielded = (one for kind in _KINDS for one in kind(facts))
    found = list(loops.without_fit(yielded, facts))
    swaps = tuple(one for one in found if isinstance(one, Swap))
    return swaps, {one.cause: one.why for one in found if isinstance(one, Untested)}
