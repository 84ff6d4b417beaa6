"""Diagnoses whose changes are found in a code, as their causes offer them."""

from perfkit.training.diagnose import edits
from perfkit.training.diagnose.causes import KNOWN
from perfkit.training.diagnose.change import Change
from tests.training.diagnose.causes.offered import named

# The cause of each change; of all others it is a callback.
CAUSES = {
    "XLA": "xla",
    "without validation": "validation",
    "parallel maps": "serial-map",
    "cache": "no-cache",
    "prefetch": "no-prefetch",
    "16 steps at a time": "step-overhead",
    "graph": "eager",
}


def offered(name, facts):
    """A change as its cause offers it, or what its cause knows of all of them."""
    cause = KNOWN[CAUSES.get(name, "callback")]
    every = named(
        cause,
        **{"batch": facts["batch"], "steps": 100, "eager": name == "graph"},
        callbacks=tuple(facts.get("callbacks", ())),
        progress=True,
        validation=True,
    )
    return every.get(name) or cause.complete(Change(name=name, changes="", fix=""))


def locate(diagnosed, made):
    facts = {"batch": 32} | diagnosed.facts
    changes = [offered(one.change, facts) for one in diagnosed.causes]
    return edits.locate(diagnosed, made, changes)


def patch(diagnosed, made, folder):
    return edits.patch(locate(diagnosed, made), made, folder)
