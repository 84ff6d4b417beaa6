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
    frozen = frozenset(told.get("frozen", ()))
    seen = Seen(account, frozen, _calls(account, told), _backward(account, told))
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


def _backward(account: Account, told: dict[str, Any]) -> tuple[Any, ...]:
    lines = {tuple(place): n for n, place in enumerate(told.get("places", ()))}
    most: dict[int, int] = {}
    for trace in told.get("traces", ()):
        for place, count in Counter(map(tuple, trace["backward"])).items():
            if place in lines:
                most[lines[place]] = max(most.get(lines[place], 0), count)
    return tuple((account.lines[n], count) for n, count in most.items())


def _calls(account: Account, told: dict[str, Any]) -> tuple[Any, ...]:
    by_place = {tuple(place): n for n, place in enumerate(told.get("places", ()))}
    return tuple(
        (account.lines[by_place[file, line]], name, count)
        for file, line, name, count in told.get("calls", ())
        if (file, line) in by_place
    )
