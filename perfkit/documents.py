"""Any document that perfkit writes, read back: ``perfkit.load(path)``."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from perfkit.findings import account_files as account
from perfkit.findings import store
from perfkit.findings.account import Account
from perfkit.findings.profile import Profile
from perfkit.findings.reading import kind_of
from perfkit.machines import record
from perfkit.machines.record import Passport
from perfkit.training.profile import profile

Document: TypeAlias = store.Recorded | Account | Profile | Passport
# Those that are no findings; who reads findings reads diagnoses too.
_OTHERS: dict[str, Callable[[bytes, str], Account | Profile | Passport]] = {
    "account": account.parse,
    "profile": profile.parse,
    "passport": record.parse,
}


def load(path: str | Path) -> Document:
    """Read a finding, an account, a diagnosis, a profile or a passport from its file.

    Raises:
        BadFileError: There is no such file, or it is none of these, or not one that
            this perfkit can read.
    """
    return store.read(path, parse)


def parse(data: bytes, name: str) -> Document:
    """Read any of them from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    # The words are looked for first, so that a finding is not read as JSON twice.
    if any(f'"{kind}"'.encode() in data for kind in _OTHERS):
        reader = _OTHERS.get(kind_of(data, name))
        if reader:
            return reader(data, name)
    return store.parsed_recorded(data, name)
