"""What slows a training: one record for each cause, in a file for each family.

A record is a ``KnownCause`` below the functions that it names. Whatever record a file
of ``_FAMILIES`` defines is known and tried.
"""

from perfkit.training.diagnose.causes import lines, model, stages, steps, surroundings
from perfkit.training.diagnose.change import Change, KnownCause, Untested
from perfkit.training.diagnose.facts import Facts

# In the order in which changes are tried where time is short; those of the input in the
# order in which they can be applied one after another.
_FAMILIES = (steps, surroundings, lines, stages, model)
KNOWN: dict[str, KnownCause] = {
    record.id: record
    for family in _FAMILIES
    for record in vars(family).values()
    if isinstance(record, KnownCause)
}
# Causes that lie in the input itself, and not only in the ends of its epochs.
OF_INPUT = tuple(known.id for known in KNOWN.values() if known.of_stages)


def applicable(facts: Facts) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Return the changes that apply, and why each other cause is left out."""
    candidates = [c for known in KNOWN.values() for c in known.candidates(facts)]
    changes = tuple(c for c in candidates if isinstance(c, Change))
    return changes, {c.cause: c.reason for c in candidates if isinstance(c, Untested)}
