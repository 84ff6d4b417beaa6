"""Where do fixed trainings spend their time on this machine?

The suspect: the same training is fast on another machine; something here is not.
The test: train the same few jobs everywhere and take each step apart by changes: a
batch that is there already (input), several steps in one call (dispatch), a batch that
need not be copied (transfer). What remains is arithmetic, and what the changes leave
open is shown as unexplained.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfkit.errors import PerfkitError
from perfkit.experiments.base import Experiment
from perfkit.experiments.reference_trainings import work
from perfkit.experiments.reference_trainings.verdict import judge
from perfkit.experiments.shared.precision import FLOAT32, seen_here
from perfkit.experiments.shared.reference_jobs import (
    REFERENCES,
    RESIDENTS,
    Reference,
    not_eligible,
)
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded

_FED = {
    "JPEG": "Fed from JPEG files.",
    "disk": "Fed from a file on the disk, which memory forgets before each pass.",
}


@dataclass(frozen=True, kw_only=True)
class ReferenceTrainings(Experiment):
    """Where do fixed trainings spend their time on this machine?"""

    name = "reference-trainings"
    notebooks = (
        *("09_two_machines", "11_your_training", "13_two_versions"),
        "14_reading_a_profile",
    )
    baseline = "small CNN from memory"

    def make_variants(self) -> Mapping[str, Variant]:
        """Each training in full, then each network on a batch that is there."""
        variants = [*map(_in_full, REFERENCES), *map(_resident, RESIDENTS.values())]
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Draw the photographs and write what is read from the disk, once."""
        # Before anything computes: it hides the GPUs, which only holds until then.
        here = seen_here()
        yield from work.make()
        refused = {
            name: why
            for one in REFERENCES
            if (why := not_eligible(one, here))
            for name in (one.variant, one.resident)
        }
        try:
            yield from work.made_on_disk()
        except PerfkitError as error:
            # The other trainings need no disk.
            why = str(error).rstrip(".")
            names = (one.variant for one in REFERENCES if one.feed == "disk")
            refused |= dict.fromkeys(names, why)
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what each training mostly spends its time on."""
        return judge(measured)


def _in_full(reference: Reference) -> Variant:
    against, changes = "", "Fed from arrays in memory, a call for each step."
    if reference.feed != "memory":
        against, changes = _like(reference), _FED[reference.feed]
    elif reference.dtype != FLOAT32:
        against = _like(reference, dtype=FLOAT32)
        changes = f"Layers compute in {reference.dtype.removeprefix('mixed_')}."
    return Variant(
        reference.variant,
        functools.partial(work.fed, reference),
        changes,
        against,
        code=work.code_of_fed(reference),
    )


def _resident(reference: Reference) -> Variant:
    return Variant(
        reference.resident,
        functools.partial(work.resident, reference),
        "One batch that is there already, instead of a pipeline.",
        _like(reference, feed="memory", dtype=reference.dtype),
        code=work.code_of_resident(reference),
    )


def _like(reference: Reference, feed: str = "memory", dtype: str = FLOAT32) -> str:
    """The variant that trains the same network, fed and computing so."""
    return next(
        one.variant
        for one in REFERENCES
        if (one.model, one.feed, one.dtype) == (reference.model, feed, dtype)
    )
