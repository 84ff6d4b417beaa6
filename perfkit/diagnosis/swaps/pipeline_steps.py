"""How much a swap keeps in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.pipeline.keeping import Worth
from perfkit.diagnosis.trial import epochs_for, loop_epochs

if TYPE_CHECKING:
    from perfkit.diagnosis.facts import Facts

# Where no epoch has an end that anybody knows, so many seconds' worth.
_WORTH_S = 0.5
_FEWEST, _MOST = 4, 256


def worth_of(facts: Facts) -> Worth:
    """As many steps as an epoch of a trial has."""
    epochs = loop_epochs(facts) if facts.loop else epochs_for(facts)
    known = epochs.trial_steps or epochs.steps
    if known:
        return Worth(known, facts.steps)
    seconds = facts.step_s or _WORTH_S
    return Worth(min(_MOST, max(_FEWEST, round(_WORTH_S / seconds))))
