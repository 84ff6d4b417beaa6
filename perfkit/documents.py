"""Any document that perfkit writes, read back: ``perfkit.load(path)``."""

from pathlib import Path
from typing import Any, TypeAlias

from perfkit.findings import reading, store
from perfkit.findings.account import Account
from perfkit.findings.profile import Profile
from perfkit.machines.record import Passport

Document: TypeAlias = store.Recorded | Account | Profile | Passport
_TYPES: tuple[type[Document], ...] = *store.RECORDED, Account, Profile, Passport


def load(path: str | Path) -> Document:
    """Read a finding, an account, a diagnosis, a profile or a passport from its file.

    Raises:
        BadFileError: There is no such file, it is none of these, or this perfkit
            cannot read it.
    """
    return store.read(path, *_TYPES)


def parse(data: bytes, name: str) -> Document:
    """Read any of them from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    return reading.parse(data, name, *_TYPES)


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one of the ``DOCUMENT_KINDS``."""
    import msgspec

    return msgspec.json.schema(reading.by_kind(*_TYPES)[kind])
