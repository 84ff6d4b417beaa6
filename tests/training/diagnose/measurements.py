"""Measurements of a training and its changes, with rates that are known."""

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.training.diagnose.causes import KNOWN
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.epochs import EPOCH_END
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.findings.made import completed, trial

# Examples of a step, where nothing else is said.
BATCH = 10


def change(name, cause, kind="defect", **more):
    texts = {"changes": f"{name} is another.", "fix": f"change({name!r})"}
    return KNOWN[cause].complete(Change(name=name, kind=kind, **texts, **more))


CEILING = change("without input", "input-bound", ceiling=True)
MAP = change("parallel map", "serial-map", after="without input")
XLA = change("XLA", "xla", "opportunity")


def measured(rounds=3, trials=(), **gains):
    """So many rounds of the training as given, and of changes with these gains.

    A change gains the same in each of them, or has a tuple with a gain for each.
    """
    rates = {AS_GIVEN: 1000.0}
    for name, gain in gains.items():
        each = gain if isinstance(gain, tuple) else (gain,) * rounds
        rates[name.replace("_", " ")] = tuple(1000.0 * one for one in each)
    return at_rates(rates, rounds, trials=trials)


def at_rates(rates, rounds, notes=None, trials=()):
    """Rounds of variants at these rates, of each round where one is a tuple.

    ``notes`` are those of all trials of a variant, by its name; ``trials`` are more.
    """

    def make(name, like, number):
        rate = rates[like]
        rate = rate[number - 1] if isinstance(rate, tuple) else rate
        told = {"noise": 0.001, "notes": (notes or {}).get(name, {})}
        return trial(name, rate, number, started=10.0 * number, **told)

    return in_rounds(rates, make, rounds, trials)


def in_rounds(names, make, rounds, trials=()):
    """Rounds of variants, and of the control of the first, the baseline.

    ``make(name, like, number)`` makes a trial, that of the control like the first.
    """
    first, *others = names
    likes = {name: name for name in names} | {CONTROL: first}
    made = [
        make(*pair, number) for number in range(1, rounds + 1) for pair in likes.items()
    ]
    against = {first: ""} | dict.fromkeys(others, first)
    return Measurement(
        variants=tuple(Variant(name, list, "", of) for name, of in against.items()),
        trials=(*made, *trials),
        baseline=first,
    )


def stepping(variant, number, step_s, ends=(), **more):
    """A trial whose every step takes so long, and ends of 100 steps so long more."""
    known = {}
    if ends := [end for end in ends if end]:
        known["recurring"] = {EPOCH_END: (100.0 * BATCH, float(BATCH))}
        known["pauses"] = {EPOCH_END: tuple(end + step_s for end in ends)}
    ticks = [(1.0 + step_s * k, BATCH if k else 0) for k in range(40)]
    return completed(variant, number, ticks, **known, **more)
