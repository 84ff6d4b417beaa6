"""``python -m perfkit.fleet.child``: one measurement, in a process of its own.

It reads its task as a line of JSON and tells how it goes in such lines. Who started it
writes a byte now and then; when none comes any more, it ends itself and all it started.
An interrupt is Stop.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from io import FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from perfkit import running
from perfkit.displays import Display
from perfkit.errors import PerfkitError, RunError
from perfkit.fleet.outcome import LEASE_S, Task, tensorflow_here

if TYPE_CHECKING:
    from perfkit.progress import Board

# What Stop is given to keep what was measured.
_GRACE_S = 5.0
_PASSPORT = "passport.json"


class Teller(Display):
    """Writes what is told as lines of JSON, and draws a board as such a line."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__()
        self._out = out

    def say(self, kind: str, **told: Any) -> None:
        """Tell one thing."""
        self._out.write(json.dumps({"kind": kind, **told}).encode() + b"\n")
        self._out.flush()

    def _draw(self, board: Board) -> None:
        self.say("doing", doing=board.doing, share=board.share, left=board.left)


def main() -> None:
    """Do the task that is read, and tell how it ended."""
    # Who starts it may ignore interrupts, and it would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    teller = Teller(os.fdopen(os.dup(1), "wb"))
    # What anything prints must not come between the lines.
    os.dup2(2, 1)
    asking = FileIO(0)
    task = Task(**json.loads(asking.readline()))
    threading.Thread(target=_end_when_alone, args=(asking,), daemon=True).start()
    measure = _passport if task.what == "passport" else _finding
    try:
        document, stopped = measure(task, teller)
    except PerfkitError as error:
        teller.say("ended", how="failed", why=str(error))
    except KeyboardInterrupt:
        why = "Nothing had been measured when it was stopped."
        teller.say("ended", how="stopped", why=why)
    else:
        teller.say("document", text=document)
        teller.say("ended", how="stopped" if stopped else "completed", why="")


def _finding(task: Task, teller: Teller) -> tuple[str, bool]:
    from perfkit.experiments import experiment
    from perfkit.findings.store import to_json

    chosen = experiment(task.experiment, **task.parameters)
    _refuse_another_tensorflow(task.tensorflow, chosen.needs)
    folder = Path.cwd()
    session = running.open_session(chosen, task.budget, seed=task.seed, folder=folder)
    finding = running.watch(session, teller)
    return to_json(finding), finding.stopped


def _passport(task: Task, teller: Teller) -> tuple[str, bool]:
    from perfkit.machines.recording import Making
    from perfkit.passports.passport import to_json

    making = Making(task.budget, task.label, Path.cwd() / _PASSPORT)
    making.make(teller)
    made = making.passport()
    return to_json(made), made.stopped


def _refuse_another_tensorflow(theirs: str, needs: tuple[str, ...]) -> None:
    ours = tensorflow_here()
    if "tensorflow" in needs and theirs and ours and theirs != ours:
        raise RunError(
            f"It has TensorFlow {ours} and the asking machine has {theirs}: that is "
            "not the same job, so it was not measured; install one version on both."
        )


def _end_when_alone(asking: FileIO) -> None:
    while select.select([asking], [], [], LEASE_S)[0] and asking.read(64):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(_GRACE_S)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
