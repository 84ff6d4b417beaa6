"""Accounts as files: one JSON document each, whole or not there at all."""

from pathlib import Path

from perfkit.findings import store
from perfkit.findings.account import Account
from perfkit.findings.reading import account_faults, encode, parse_as


def save(
    account: Account, folder: str | Path | None = None, path: Path | None = None
) -> Path:
    """Write an account to a file of its own, or over an earlier state of it.

    Raises:
        PerfkitError: It cannot be written there. The account itself is untouched.
    """
    name = store.name_of(account.kind, account.recorded)
    where = path or Path(folder or store.FOLDER).expanduser() / name
    store.write_as(where, encode(account), account.kind)
    store.remember(account, where)
    return where


def to_json(account: Account) -> str:
    """Write an account as JSON."""
    return encode(account).decode()


def parse(data: bytes, name: str) -> Account:
    """Read an account from the bytes of a file, by the name that errors call it.

    Raises:
        BadFileError: It is anything but an account; the sentence says what.
    """
    return parse_as(Account, data, name, account_faults)
