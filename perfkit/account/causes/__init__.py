"""What people do that slows a training, and what helps: one record for each cause."""

from collections import Counter
from typing import Any

from perfkit.account.causes import calls, graphs, inputs, python
from perfkit.account.causes.base import Cause, Seen
from perfkit.findings.account import Account, Tip

# In the order in which one explains more than those behind it.
CAUSES: tuple[Cause, ...] = (
    *calls.CAUSES,
    *graphs.CAUSES,
    *inputs.CAUSES,
    *python.CAUSES,
)
_MOST = 6


def tips(account: Account, told: dict[str, Any]) -> tuple[Tip, ...]:
    """What applies to an account, the largest share first.

    Args:
        account: Without tips.
        told: What ``charge`` told besides: frozen layers, and calls of every line.
    """
    lines = {
        tuple(place): account.lines[number]
        for number, place in enumerate(told.get("places", ()))
    }
    calls = tuple(
        (lines[file, line], name, count)
        for file, line, name, count in told.get("calls", ())
        if (file, line) in lines
    )
    # The most in one trace: a function may be traced again.
    backward = Counter[tuple[str, int]]()
    for trace in told.get("traces", ()):
        backward |= Counter(map(tuple, trace["backward"]))
    seen = Seen(
        account,
        frozenset(told.get("frozen", ())),
        calls,
        tuple((lines[place], n) for place, n in backward.items() if place in lines),
    )
    found: list[Tip] = []
    for cause in CAUSES:
        for tip in cause.tips(seen):
            # The first cause that explains a line is the one with most to say of it.
            if not any(tip.lines[0] in other.lines for other in found):
                found.append(tip)
    found.sort(key=lambda tip: -tip.share)
    return tuple(found[:_MOST])


def swapped(account: Account) -> frozenset[str]:
    """The causes of changes of a diagnosis that an account's tips are about."""
    told = {tip.cause for tip in account.tips}
    return frozenset(one.swap for one in CAUSES if one.id in told and one.swap)
