"""What did the reader expect, as far as it can be drawn?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.findings.text import plain

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

_RATIO = re.compile(
    r"(?:about|around|~)?\s*(\d{1,6}(?:[.,]\d{1,6})?)\s*"
    r"(?:x|\N{MULTIPLICATION SIGN}|times)(?!\w).*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Guess:
    """A prediction.

    Attributes:
        words: As the reader wrote it.
        variant: The variant it names; "" if none.
        ratio: The ratio to the baseline that it names; None if none.
    """

    words: str = ""
    variant: str = ""
    ratio: float | None = None


def guess(finding: Finding) -> Guess:
    """Read the guess of a finding: a variant's name, or a ratio such as ``"3x"``."""
    words = plain(finding.guess, 80)
    variants = [t.variant for t in finding.timings] + [
        t.variant for t in finding.trials
    ]
    names = {variant.casefold(): variant for variant in variants}
    if words.casefold() in names:
        return Guess(words, variant=names[words.casefold()])
    found = _RATIO.fullmatch(words)
    ratio = float(found[1].replace(",", ".")) if found else 0.0
    return Guess(words, ratio=ratio or None)
