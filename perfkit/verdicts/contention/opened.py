"""Open a mystery: what it was, and what in the counters gave it away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.errors import BadParameterError
from perfkit.verdicts.contention import signs
from perfkit.verdicts.contention.mystery import MYSTERY, sealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding


@dataclass(frozen=True)
class Opened:
    """An opened mystery.

    Attributes:
        slowdown: What it was, by the name of its arm.
        because: What moved in the counters and the steps, a sentence each.
        suspect: What those alone point to; "" where they point to nothing.
    """

    slowdown: str
    because: tuple[str, ...]
    suspect: str

    def __str__(self) -> str:
        """It was this, and that is how one could tell."""
        return "\n".join([f'It was "{self.slowdown}".', *self.because, *self._judged()])

    def _judged(self) -> Iterator[str]:
        if not self.suspect:
            yield "In this run no counter moved far enough to point to anything."
        elif self.suspect != self.slowdown:
            yield (
                f'In this run these point to "{self.suspect}": the counters do not '
                "tell the two apart here. On a quieter machine, or in more seconds, "
                "they may."
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
    found = signs.moved(finding.trials, finding.samples, MYSTERY)
    return Opened(
        slowdown=sealed(number, str(finding.parameters.get("fed"))),
        because=tuple(f"{_upper(str(one))}." for one in found.values()),
        suspect=signs.suspect(found),
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
