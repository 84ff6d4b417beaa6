"""Did both machines do the same job?

The job is what was asked for: network, batch, precision, data, feeding, optimizer,
seed, parameters. What did it is the machine: hardware, drivers, settings and libraries,
TensorFlow and Keras among them. So another TensorFlow is a difference of the machines
and is said; a network that learns another number of weights is another job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.comparing.differing import Differs
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.comparing.works import Held

_NONE = "not said"
# Libraries that do the work: that they differ is said with the verdict.
_WORKERS = {"tensorflow": "TensorFlow", "keras": "Keras"}


def same_job(a: Held, b: Held) -> tuple[Differs, ...]:
    """In what two documents differ as a whole; () where they ask for the same."""
    return _unlike(a.asked, b.asked)


def same_work(a: Held, b: Held, name: str) -> tuple[Differs, ...]:
    """In what one job differs, which both have; () where it is the same."""
    one, other = a.works[name].job, b.works[name].job
    known = {"weights"} - (one.keys() & other.keys())
    return _unlike(_without(one, known), _without(other, known))


def other_software(a: Held, b: Held) -> str:
    """That other libraries did the job, in a sentence; "" where they are the same."""
    told = [
        f"{title} {_version(a, name)} on A, {_version(b, name)} on B"
        for name, title in _WORKERS.items()
        if _version(a, name) != _version(b, name)
    ]
    if not told:
        return ""
    return (
        f"The job is the same, what did it is not: {'; '.join(told)}. Libraries count "
        "as part of the machine."
    )


def _version(held: Held, name: str) -> str:
    return plain(held.machine.versions.get(name, "not installed"), 40)


def _without(job: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in job.items() if name not in names}


def _unlike(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Differs, ...]:
    return tuple(
        Differs(what=name, a=a.get(name, _NONE), b=b.get(name, _NONE))
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    )
