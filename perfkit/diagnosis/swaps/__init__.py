"""The swaps, a file per kind: each says from the facts which of them apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps import execution, resident

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.diagnosis.facts import Facts

# In the order in which they are tried where time is short.
_KINDS: tuple[Callable[[Facts], Iterator[Swap | Untested]], ...] = (
    resident.swaps,
    execution.swaps,
)


def applicable(facts: Facts) -> tuple[tuple[Swap, ...], dict[str, str]]:
    """Say which swaps apply, and of each cause that was left out why."""
    found = [one for kind in _KINDS for one in kind(facts)]
    swaps = tuple(one for one in found if isinstance(one, Swap))
    return swaps, {one.cause: one.why for one in found if isinstance(one, Untested)}
