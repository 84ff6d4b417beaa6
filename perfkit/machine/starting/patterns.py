"""What TensorFlow says as it starts, and what that means: ``patterns.toml``, read."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from perfkit.machine.record import Weight


class Pattern(NamedTuple):
    """One kind of line.

    Attributes:
        text: A regular expression that is found in the line.
        weight: Whether it keeps a GPU away, costs speed, or may be left alone.
        meaning: In a sentence or two, with what to do where there is something.
    """

    text: re.Pattern[str]
    weight: Weight
    meaning: str


def explained(message: str) -> Pattern | None:
    """Find what a message of the log means; None where nobody has explained it."""
    return next((p for p in patterns() if p.text.search(message)), None)


@functools.cache
def patterns() -> tuple[Pattern, ...]:
    """All kinds of line that are known, in the order in which they are looked for."""
    table = files(__package__).joinpath("patterns.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(table)["pattern"]
    return tuple(
        Pattern(re.compile(row["text"]), row["weight"], row["meaning"]) for row in rows
    )
