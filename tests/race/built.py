"""Races without processes: sides, what is known of them, and rates that are known."""

from perfkit.diagnosis.facts import Facts
from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.race.question import Race
from perfkit.race.side import Side
from tests.findings.made import trial

BATCH = 10
OLD, NEW = "old.py", "new.py"
# A rate twice as fast in one round as in the next.
WAVERING = 3 * (700.0, 1400.0)


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


def measured(rates=None, rounds=6, notes=None, trials=(), noise=0.001):
    """Rounds of sides with these rates, and of the control of the first.

    Args:
        rates: Examples per second by side, of each round where it is a tuple; the
            first side is the baseline.
        rounds: How many.
        notes: Of each trial of a side, by its name.
        trials: More of them.
        noise: Of ticks and trials, as a share.
    """
    rates = rates or {OLD: 1000.0, NEW: 1000.0}
    first = next(iter(rates))
    made = [
        trial(
            name,
            rate[number - 1] if isinstance(rate, tuple) else rate,
            number,
            started=10.0 * number,
            noise=noise,
            notes=(notes or {}).get(name, {}),
        )
        for number in range(1, rounds + 1)
        for name, rate in (rates | {CONTROL: rates[first]}).items()
    ]
    variants = [
        Variant(name, make_training, "", "" if name == first else first)
        for name in rates
    ]
    return Measurement(
        variants=tuple(variants), trials=(*made, *trials), baseline=first
    )


def race(of=None, **known):
    """The question of a race; ``known`` is what its sides have besides, by their names.

    A name without its ending will do.
    """
    of = of or sides()
    return Race(
        of=of,
        facts={
            side.name: facts(**known.get(side.name.partition(".")[0], {}))
            for side in of
        },
        typed="perfkit race old.py new.py",
    )
