"""What can be held against each other: passports, findings and diagnoses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import documents
from perfkit.errors import BadFileError
from perfkit.findings.profile import Profile

if TYPE_CHECKING:
    from perfkit.comparing.works import Document


def parsed(data: bytes, name: str) -> Document:
    """Read a passport, a finding or a diagnosis from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    found = documents.parsed(data, name)
    if isinstance(found, Profile):
        raise BadFileError(
            f"{name} is a profile, which explains one training; give the file of a "
            "passport, of a finding or of a diagnosis."
        )
    return found
