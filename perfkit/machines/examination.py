"""What one look at a machine has shown: the machine, and what is to be said of it."""

import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.errors import BadParameterError, PerfkitError
from perfkit.findings import store
from perfkit.findings.record import Finding
from perfkit.findings.shown import Shown
from perfkit.machine.checks import checks
from perfkit.machine.checks.base import Check
from perfkit.machine.collect import disk, machine
from perfkit.machine.load import observed
from perfkit.machine.record import Machine
from perfkit.machine.starting import started
from perfkit.progress import Display, display_here
from perfkit.questions import experiment
from perfkit.questions.parameters import Folder

_SCHEMA = 2
_TOLD = ("id", "status", "title", "evidence", "why", "remedy")


@dataclass(frozen=True, kw_only=True, repr=False)
class Examination(Shown):
    """A machine and its checks; it shows itself as a page.

    Attributes:
        machine: What it is.
        checks: What can be said of it, what costs most first.
        microbenchmarks: How fast each part is; None where that was not measured.
        missed: Why a part of the look did not take place, a sentence each.
        stopped: Whether it was interrupted before it had seen everything.
    """

    machine: Machine
    checks: tuple[Check, ...]
    microbenchmarks: Finding | None = None
    missed: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The checks that fail or warn, what costs most first."""
        problems = [c for c in self.checks if c.status in ("fail", "warn")]
        return tuple(sorted(problems, key=lambda check: -check.cost))

    @property
    def fails(self) -> bool:
        """Whether TensorFlow cannot use what is there; a warning is no failure."""
        return any(check.status == "fail" for check in self.checks)

    @property
    def missing(self) -> str:
        """Why no training can be run here, in a sentence; "" where one can."""
        start = self.machine.start
        return start.problem if start else "TensorFlow was not started."

    def summary(self) -> str:
        """How many checks are well, and which the machine gives no answer to."""
        well = sum(check.status == "ok" for check in self.checks)
        text = f"{well} {'check is' if well == 1 else 'checks are'} ok."
        titles = (c.title for c in self.checks if c.status == "unknown")
        unknown = dict.fromkeys(titles)
        return f"{text} Not known here: {'; '.join(unknown)}." if unknown else text

    def to_json(self) -> str:
        """The machine and its checks, for a program."""
        from msgspec.json import decode, encode

        document: dict[str, Any] = {
            "schema": _SCHEMA,
            "machine": self.machine,
            "checks": [{n: getattr(c, n) for n in _TOLD} for c in self.checks],
        }
        if finding := self.microbenchmarks:
            document["microbenchmarks"] = {
                "file": finding.path.name if finding.path else None,
                "stopped": finding.stopped,
                "verdict": finding.verdict.headline,
            }
        # What JSON has no number for is null.
        return json.dumps(decode(encode(document)), indent=1, allow_nan=False)


MICROBENCHMARKS = "machine-ladder"
# A probe takes under three minutes, and microbenchmarks have their preparing on top.
_PROBE_S, _PREPARING_S = 165.0, 40.0
# What a start that hangs may cost, and what microbenchmarks need at least.
_START_S, _MICROBENCHMARKS_S = 75.0, 45.0


def doctor(
    *,
    prove: bool = False,
    probe: bool = False,
    microbenchmarks: Finding | None = None,
    folder: str | Path | None = None,
    display: Display | None = None,
) -> Examination:
    """Say what this machine is, and what in it slows training.

    Without a probe it takes a second or two. An interrupt ends a probe, and what was
    found by then is given back.

    Args:
        prove: Also start TensorFlow in a process of its own and let every device
            compute, which takes 10 to 30 s.
        probe: Do that, and measure how fast each part of the machine is, all in under
            3 minutes. The measurement is saved as a finding.
        microbenchmarks: Take this measurement of the parts of the machine into account,
            a finding of ``machine-ladder`` made here; none is made then.
        folder: Where the data lie; the file system there is checked, and a probe reads
            from its disk.
        display: Where progress is shown; None for where this runs.

    Raises:
        BadParameterError: There is no such folder, or that is another finding.
    """
    if not isinstance(folder, str | Path | None):
        raise BadParameterError(f"The folder is {folder!r}; give its path.")
    Folder().check("folder", folder or "")
    if not isinstance(microbenchmarks, Finding | None):
        raise BadParameterError(f"This is {microbenchmarks!r}; give a finding.")
    if microbenchmarks is not None and microbenchmarks.experiment != MICROBENCHMARKS:
        name = microbenchmarks.experiment
        raise BadParameterError(
            f"This is a finding of {name!r}; give one of {MICROBENCHMARKS!r}."
        )
    began, display = time.monotonic(), display or display_here()
    this_machine, missed, stopped = machine(), list[str](), False
    measured: Finding | None = None
    if folder:
        this_machine = replace(this_machine, disk=disk(folder))
    try:
        if prove or probe:
            with display.showing("Starting TensorFlow"):
                this_machine = replace(this_machine, start=started(_START_S))
        if microbenchmarks is not None and microbenchmarks.replayed:
            stamp = microbenchmarks.stamp
            missed.append(f"The microbenchmarks are not of this machine: {stamp}")
        elif microbenchmarks is not None or probe:
            finding = microbenchmarks or _measure(folder, display, began, missed)
            # The finding is told which machine it was, and that what its GPUs did.
            this_machine = replace(
                this_machine, gpus=observed(this_machine.gpus, finding.samples)
            )
            measured, stopped = replace(finding, machine=this_machine), finding.stopped
            if microbenchmarks is None and finding.path:
                store.save(measured, path=finding.path)
    except KeyboardInterrupt:
        stopped = True
    except PerfkitError as error:
        missed.append(str(error))
    return Examination(
        machine=this_machine,
        checks=checks(this_machine),
        microbenchmarks=measured,
        missed=tuple(missed),
        stopped=stopped,
    )


def _measure(
    folder: str | Path | None, display: Display, began: float, missed: list[str]
) -> Finding:
    """Measure how fast each part is, in the time that a probe has left."""
    from perfkit.questions import runs

    spent = time.monotonic() - began
    remaining_s = max(_MICROBENCHMARKS_S, _PROBE_S - _PREPARING_S - spent)
    small = runs.BUDGET_VARIABLE in os.environ
    microbenchmarks = experiment(MICROBENCHMARKS, data=os.fspath(folder or ""))
    session = runs.open_session(microbenchmarks, None if small else remaining_s)
    finding = runs.watch(session, display)
    if session.unsaved:
        # A command has no memory from which it could be saved again.
        reason, _, _ = session.unsaved.partition(" In a notebook")
        missed.append(f"Microbenchmarks are shown here and not kept: {reason}")
    return finding
