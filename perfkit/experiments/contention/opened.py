"""Open a mystery: what it was, and what in the counters gave it away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.errors import BadParameterError
from perfkit.experiments.contention import signs
from perfkit.experiments.contention.mystery import MYSTERY, sealed
from perfkit.experiments.contention.suspects import suspects
from perfkit.experiments.shared.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding


@dataclass(frozen=True)
class Opened:
    """An opened mystery.

    Attributes:
        slowdown: What it was, by the name of its arm.
        because: What moved in the counters and the steps, a sentence each.
        suspects: What fits those: one, several that cannot be told apart, or none.
    """

    slowdown: str
    because: tuple[str, ...]
    suspects: tuple[str, ...]

    def __str__(self) -> str:
        """It was this, and that is how one could tell."""
        return "\n".join([f'It was "{self.slowdown}".', *self.because, *self._judged()])

    def _judged(self) -> Iterator[str]:
        if not self.suspects:
            yield "In this run no counter moved far enough to point to anything."
        elif len(self.suspects) > 1:
            yield (
                f"By these it may be {listed(self.suspects)}: which one cannot be told "
                "from this run. A quieter machine or more seconds may decide it."
            )
        elif self.slowdown not in self.suspects:
            yield (
                f"In this run these point to {listed(self.suspects)}, and that is "
                "wrong. Something else came by: run it again on a quieter machine."
            )


def opened(finding: Finding) -> Opened:
    """Tell what the mystery of a finding was.

    The number of the mystery decides it, so it is worked out anew and was nowhere
    written down.

    Raises:
        BadParameterError: The finding holds no mystery.
    """
    number = finding.parameters.get("mystery")
    if finding.experiment != "contention" or not isinstance(number, int) or not number:
        raise BadParameterError(
            "This finding holds no mystery; run one with "
            '`perfkit.run("contention", mystery=7)`, or with any other number.'
        )
    fed = str(finding.parameters.get("fed"))
    found = signs.moved(finding.trials, finding.samples, MYSTERY)
    return Opened(
        slowdown=sealed(number, fed),
        because=tuple(f"{_upper(str(one))}." for one in found.values()),
        suspects=suspects(finding.trials, finding.samples, MYSTERY, fed),
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
