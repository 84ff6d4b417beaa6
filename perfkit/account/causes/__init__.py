"""What people do that slows a training, and what helps: one record for each cause.

A record is a finder with ``@cause`` above it; those that explain more come first.
"""

from collections import Counter
from typing import Any

from perfkit.account.causes import calls, debugging, graphs, inputs, python
from perfkit.account.causes.base import Cause, Seen
from perfkit.findings.account import Account, Tip

CAUSES: tuple[Cause, ...] = tuple(
    record
    for family in (debugging, calls, graphs, inputs, python)
    for record in vars(family).values()
    if isinstance(record, Cause)
)
_MOST = 6


def tips(account: Account, charged: dict[str, Any]) -> tuple[Tip, ...]:
    """What applies to an account, the largest share first.

    Args:
        account: Without tips.
        charged: What ``charge`` gives besides: frozen layers, calls of every line, and
            settings that are on.
    """
    lines = {
        tuple(place): account.lines[number]
        for number, place in enumerate(charged.get("places", ()))
    }
    calls = tuple(
        (lines[file, line], name, count)
        for file, line, name, count in charged.get("calls", ())
        if (file, line) in lines
    )
    # The most in one trace: a function may be traced again.
    backward = Counter[tuple[str, int]]()
    for trace in charged.get("traces", ()):
        backward |= Counter(map(tuple, trace["backward"]))
    seen = Seen(
        account,
        frozenset(charged.get("frozen", ())),
        calls,
        tuple((lines[place], n) for place, n in backward.items() if place in lines),
        frozenset(charged.get("settings", ())),
    )
    tips: list[Tip] = []
    for cause in CAUSES:
        for tip in cause.tips(seen):
            # The first cause that explains a line is the one with most to say of it.
            if not any(tip.lines[0] in other.lines for other in tips):
                tips.append(tip)
    tips.sort(key=lambda tip: -tip.share)
    return tuple(tips[:_MOST])


def swapped(account: Account) -> frozenset[str]:
    """The causes of changes of a diagnosis that an account's tips are about."""
    names = {tip.cause for tip in account.tips}
    return frozenset(one.swap for one in CAUSES if one.id in names and one.swap)
