"""Accounts as files: one JSON document each, whole or not there at all."""

from collections.abc import Iterator
from pathlib import Path

from perfkit.findings import store
from perfkit.findings.account import KINDS, Account
from perfkit.findings.reading import encode, parse_as

_MOST_LINES, _MOST_STAGES = 2000, 1000


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
    return parse_as(Account, data, name, _faults)


def _faults(account: Account) -> Iterator[str]:
    """What no account can hold, although each value is of the right type."""
    if len(account.lines) > _MOST_LINES or len(account.stages) > _MOST_STAGES:
        yield f"it has more than {_MOST_LINES} lines or {_MOST_STAGES} stages"
    seconds: list[float] = [account.wall_s, account.once_s, account.elsewhere_s]
    for line in account.lines:
        seconds += [*line.seconds.values(), line.beside_s]
        if not set(line.seconds) <= set(KINDS):
            yield "a line has seconds of an unknown kind"
    if min(seconds) < 0:
        yield "a time is below 0"
    known = range(len(account.lines))
    if any(one not in known for tip in account.tips for one in tip.lines):
        yield "a tip is about a line that is not there"
    if any(one.line >= len(known) for one in account.stages):
        yield "a stage is on a line that is not there"
