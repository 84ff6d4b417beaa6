"""What cannot be swapped in a loop of the user's own: there is no ``fit`` to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.swap import Swap, Untested, nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.diagnosis.facts import Facts

NEED_FIT = (
    *("eager", "step-overhead", "xla", "precision", "small-batch"),
    *("callback", "validation"),
)
_WHY = "it needs fit: a loop of your own decides that itself"


def without_fit(
    found: Iterable[Swap | Untested], facts: Facts
) -> Iterator[Swap | Untested]:
    """Leave out of a loop what needs ``fit``, and say so."""
    if not facts.loop:
        yield from found
        return
    kept = [one for one in found if one.cause not in NEED_FIT or _comes_first(one)]
    yield from kept
    known = {one.cause for one in kept}
    yield from (Untested(cause, _WHY) for cause in NEED_FIT if cause not in known)


def _comes_first(one: Swap | Untested) -> bool:
    """Whether it sets something before the loop runs, and so needs no ``fit``."""
    return isinstance(one, Swap) and one.before is not nothing
