"""What came home is somebody else's document: it is read with care, then saved."""

from __future__ import annotations

import datetime
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings import reading as finding_reading
from perfkit.findings import store
from perfkit.findings.text import plain
from perfkit.fleet.outcome import How, Outcome
from perfkit.passports import reading as passport_reading
from perfkit.passports import saving
from perfkit.passports.words import headline

if TYPE_CHECKING:
    from perfkit.findings.record import Finding
    from perfkit.fleet.task import Member, Task
    from perfkit.passports.record import Passport

PASSPORTS = "perfkit-passports"
_LONGEST = 400
# A text within a text may be twice as long.
_LARGEST_BYTES = 2 * finding_reading.LARGEST_BYTES
_WHAT = "what it sent"


@dataclass(frozen=True)
class Keeper:
    """Reads and saves what comes home, at once.

    Args:
        folder: Where it is saved; None for a folder here by the name of its kind.
    """

    folder: Path | None = None

    def outcome(
        self, member: Member, task: Task, data: bytes, seconds: float
    ) -> Outcome:
        """Say how a member ended that sent this."""
        try:
            how, why, document = _parts(data)
            found = self._kept(document, task) if document else None
        except PerfkitError as error:
            said = f"What it sent was not kept: {error}"
            return Outcome(member=member, how="failed", said=said, seconds=seconds)
        return Outcome(
            member=member,
            how=how,
            said=_said(how, why, found, task),
            seconds=seconds,
            document=found,
        )

    def _kept(self, document: str, task: Task) -> Finding | Passport:
        data = document.encode()
        if task.what == "passport":
            passport = passport_reading.parsed(data, _WHAT)
            saving.save(passport, self._new_passport())
            return passport
        finding = finding_reading.parsed(data, _WHAT)
        if finding.experiment != task.experiment:
            raise BadFileError(f"{_WHAT} answers another question than was asked.")
        # No machine of a fleet shows recordings, whatever the document says of itself.
        finding = replace(finding, replayed=False)
        store.save(finding, self.folder)
        return finding

    def _new_passport(self) -> Path:
        now = datetime.datetime.now().astimezone()
        name = f"passport-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.json"
        return (self.folder or Path(PASSPORTS)) / name


def _parts(data: bytes) -> tuple[How, str, str]:
    """How it ended, why, and the document as a text.

    Raises:
        BadFileError: It is nothing that a member of a fleet sends.
    """
    try:
        told = (
            json.loads(data) if len(data) <= 2 * finding_reading.LARGEST_BYTES else None
        )
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"how": str(how), "why": str(why), "document": str(document)} if (
            how in get_args(How)
        ):
            return how, plain(why, _LONGEST), document  # type: ignore[return-value]
    raise BadFileError(f"{_WHAT} is nothing that perfkit sends.")


def _said(how: How, why: str, found: Finding | Passport | None, task: Task) -> str:
    if found is None:
        return why or "It ended without a word and without a finding."
    if task.what == "passport":
        said = headline(found) + _another(found, task)  # type: ignore[arg-type]
    else:
        said = plain(found.verdict.headline, _LONGEST)  # type: ignore[union-attr]
    if how == "completed":
        return said
    return f"{why or 'It was stopped.'} What it measured by then: {said}"


def _another(passport: Passport, task: Task) -> str:
    """That it has another TensorFlow; "" where it has the same or none."""
    version = plain(passport.machine.versions.get("tensorflow", ""), 40)
    if version in ("", task.tensorflow) or not task.tensorflow:
        return ""
    return f"; it has TensorFlow {version}, the asking machine {task.tensorflow}"
