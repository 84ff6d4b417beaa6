"""What the asking machine hears of its fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Doing:
    """A member runs: what it does, which share is done, which time is left."""

    key: str
    doing: str = ""
    share: float = 0.0
    left: str = ""


@dataclass(frozen=True)
class Home:
    """A member sent what it has; the bytes are of another machine and not trusted."""

    key: str
    data: bytes


@dataclass(frozen=True)
class Broken:
    """A member could not do it; why, in a sentence."""

    key: str
    why: str


@dataclass(frozen=True)
class Left:
    """A member is no longer part of the fleet."""

    key: str


News = Doing | Home | Broken | Left
