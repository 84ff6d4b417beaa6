"""What people do that slows a training, and what helps: one record for each cause.

A record is a finder with ``@cause`` above it; those that explain more come first.
"""

from collections.abc import Mapping
from typing import Any

from perfkit.findings.account import Account, Tip
from perfkit.training.account.causes import calls, graphs, inputs
from perfkit.training.account.causes.base import Cause, View

CAUSES: tuple[Cause, ...] = tuple(
    record
    for family in (calls, graphs, inputs)
    for record in vars(family).values()
    if isinstance(record, Cause)
)
_MOST = 6


def tips(account: Account, charges: Mapping[str, Any]) -> tuple[Tip, ...]:
    """Return the tips that apply to an account, the largest share first."""
    view, tips = View(account, charges), list[Tip]()
    for tip in (tip for cause in CAUSES for tip in cause.tips(view)):
        # Causes are in order: the first one that explains a line says most.
        if not any(tip.lines[0] in earlier.lines for earlier in tips):
            tips.append(tip)
    tips.sort(key=lambda tip: -tip.share)
    return tuple(tips[:_MOST])


def swapped(account: Account) -> frozenset[str]:
    """Return the causes of a diagnosis that the tips of an account are about."""
    names = {tip.cause for tip in account.tips}
    return frozenset(o.swap for o in CAUSES if o.tip.cause in names and o.swap)
