"""What can be swapped in a loop of the user's own, where there is no ``fit``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.diagnosis import loop_calls
from perfkit.diagnosis.swap import Swap, Untested, nothing
from perfkit.diagnosis.swaps import resident

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perfkit.diagnosis.facts import Facts

NEED_FIT = (
    *("step-overhead", "xla", "precision", "small-batch", "callback", "validation"),
)
_WHY = "it needs fit: a loop of your own decides that itself"


def swaps(facts: Facts) -> Iterator[Swap]:
    """``tf.function`` around what each step calls, and one iterator for all of them."""
    if facts.eager_calls:
        yield _in_graphs(facts.eager_calls)
    if facts.drawn.get(loop_calls.ITERATORS, 0.0) >= loop_calls.OFTEN:
        yield Swap(
            name="one iterator",
            cause="epoch-boundary",
            kind="defect",
            changes="The data are gone through by one iterator, and none is made in "
            "each step.",
            fix="batches = iter(dataset.repeat()) before the loop, and next(batches) "
            "in it instead of next(iter(dataset)).",
            apply=loop_calls.one_iterator,
            after=resident.NAME,
        )


def _in_graphs(functions: Sequence[str]) -> Swap:
    listed = " and ".join(f"`{name.partition(':')[2]}`" for name in functions)
    return Swap(
        name="tf.function",
        cause="eager",
        kind="defect",
        changes=f"{listed} is traced once and run as a graph.",
        fix=f"@tf.function in the line above {listed}. What it does besides "
        "computing, such as counting in Python, then happens only once.",
        apply=functools.partial(loop_calls.as_graphs, functions=tuple(functions)),
    )


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
