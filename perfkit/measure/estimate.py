"""A number that was measured or worked out, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and the ends of its 95 % interval."""

    value: float
    low: float
    high: float
