"""Races without processes: sides, what is known of them, and rates that are known."""

from dataclasses import replace

from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.training.diagnose.facts import Facts
from perfkit.training.race.question import Race
from perfkit.training.race.sides import Side
from tests.training.diagnose.measurements import at_rates

BATCH = 10
OLD, NEW, THIRD = "old.py", "new.py", "third.py"
# A rate twice as fast in one round as in the next.
WAVERING = 3 * (700.0, 1400.0)
FUNCTION = "def make_training():\n    return 1, 2\n"


def make_training():
    raise AssertionError("a race that is built by hand trains nothing")


def facts(**more):
    """A small training of Keras on arrays."""
    known = {
        "parameters": 41,
        "layers": ("Dense", "Dense"),
        "data": "arrays",
        "batch": BATCH,
        "steps": 100,
        "element": ("float32[10, 4]", "float32[10]"),
        "ready_s": 2.0,
        "step_s": 0.01,
    }
    return Facts(**known | more)


def sides(*names, **more):
    """Sides with these names; ``more`` is what all but the first have."""
    first, *others = names or (OLD, NEW)
    return (
        Side(name=first, maker=make_training),
        *(Side(name=name, maker=make_training, **more) for name in others),
    )


def measured(rates=None, rounds=6, notes=None, trials=()):
    """Rounds of sides at these rates, as ``at_rates`` makes them."""
    rates = rates or {OLD: 1000.0, NEW: 1000.0}
    return replace(at_rates(rates, rounds, notes, trials), least_rounds=LEAST_ROUNDS)


def race(of=None, **known):
    """The question of a race; ``known`` is what its sides have besides, by their names.

    A name without its ending will do.
    """
    of = of or sides()
    seen = {s.name: facts(**known.get(s.name.partition(".")[0], {})) for s in of}
    return Race(sides=of, facts=seen, typed="perfkit race old.py new.py")
