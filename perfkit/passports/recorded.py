"""Machines that perfkit brings along, recorded by itself and never edited by hand.

Each is a folder of ``perfkit/reference/``: its passport, and findings that were made on
it the same day. When, on what and with which budget is in the files themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.passports.reading import load

if TYPE_CHECKING:
    from perfkit.passports.record import Passport

FOLDER = Path(__file__).parents[1] / "reference"
PASSPORT = "passport.json"


def recorded() -> dict[str, Passport]:
    """The passports of the machines that perfkit brings along, by machine.

    Raises:
        BadFileError: One of them was changed, and is no passport any more.
    """
    return {
        path.parent.name: load(path) for path in sorted(FOLDER.glob(f"*/{PASSPORT}"))
    }
