"""What people do that slows a training, and what helps: one record for each cause.

A record is a finder with ``@cause`` above it; those that explain more come first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfkit.findings.account import Account, Line, Tip
from perfkit.training.account.causes import calls, graphs, inputs, python, settings
from perfkit.training.account.causes.base import Cause, View

CAUSES: tuple[Cause, ...] = tuple(
    record
    for family in (settings, calls, graphs, inputs, python)
    for record in vars(family).values()
    if isinstance(record, Cause)
)
_MOST = 6


def tips(account: Account, charged: dict[str, Any]) -> tuple[Tip, ...]:
    """Return the tips that apply to an account, the largest share first.

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
    view = View(
        account,
        frozenset(charged.get("frozen", ())),
        calls,
        tuple((lines[place], n) for place, n in backward.items() if place in lines),
        {
            text: lines.get(tuple(place or ()))
            for text, place in charged.get("settings", ())
        },
        _pairs(lines, charged.get("callers", ())),
        _pairs(lines, charged.get("definitions", ())),
        tuple(
            (lines[file, line], share)
            for file, line, share in charged.get("padded", ())
            if (file, line) in lines
        ),
    )
    tips: list[Tip] = []
    for cause in CAUSES:
        for tip in cause.tips(view):
            # Causes are in order: the first one that explains a line says most.
            if not any(tip.lines[0] in earlier.lines for earlier in tips):
                tips.append(tip)
    tips.sort(key=lambda tip: -tip.share)
    return tuple(tips[:_MOST])


def _pairs(
    lines: Mapping[tuple[Any, ...], Line], places: Iterable[Sequence[Any]]
) -> tuple[tuple[Line, Line], ...]:
    """Return the two lines of each ``[file, line, other file, other line]``."""
    pairs = (((file, line), (other, at)) for file, line, other, at in places)
    return tuple(
        (lines[one], lines[two]) for one, two in pairs if {one, two} <= lines.keys()
    )


def swapped(account: Account) -> frozenset[str]:
    """Return the causes of a diagnosis that the tips of an account are about."""
    names = {tip.cause for tip in account.tips}
    return frozenset(cause.swap for cause in CAUSES if cause.id in names and cause.swap)
