"""What can be held against each other: passports, findings and diagnoses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.findings import reading, store
from perfkit.passports import reading as passports

if TYPE_CHECKING:
    from perfkit.comparing.works import Document


def parsed(data: bytes, name: str) -> Document:
    """Read a passport, a finding or a diagnosis from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    # The word is looked for first, so that a finding is not read as JSON twice.
    if b'"passport"' in data and reading.kind_of(data, name) == "passport":
        return passports.parsed(data, name)
    return store.parsed_recorded(data, name)
