"""One measurement in a process of its own: who starts it, and what runs in it.

Who starts it holds its input open. Closing that is Stop, and whoever dies closes it,
too; and after its time it ends by itself. So nothing of it is left, whatever happens.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import runs
from perfkit.errors import PerfkitError, RunError
from perfkit.experiments import experiment
from perfkit.machine import software
from perfkit.progress import Board, Display

if TYPE_CHECKING:
    from perfkit.machines.recording import Making

# What it does is told this often.
_BEAT_S = 1.0
# What Stop is given to keep what was measured; then it ends itself, or is ended.
_GRACE_S, _KILLED_S = 4.0, 5.0
_TAIL = 4000
_TOLD, _FOUND = "told.json", "found"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to measure. It travels as JSON, so it holds nothing else.

    Attributes:
        experiment: Its name; "" for the machine's passport.
        parameters: The experiment's parameters that were given.
        budget: Seconds to spend on measuring.
        seconds: After so many it is stopped, and what it has by then counts.
        seed: Where random order and random numbers start; None draws one.
        label: What a passport calls the machine.
        tensorflow: The version that the asking machine has; "" if it has none.
    """

    experiment: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    budget: float
    seconds: float = 0.0
    seed: int | None = None
    label: str = ""
    tensorflow: str = ""


def tensorflow_here() -> str:
    """The version of TensorFlow that Python would import here; "" if there is none."""
    return software.versions(sys.path).get("tensorflow", "")


def measure(
    task: dict[str, Any],
    tell: Callable[[dict[str, Any]], None],
    wanted: Callable[[], bool],
    *,
    without: Collection[str] = (),
) -> bytes:
    """Do a task in a process of its own; nothing of it is left afterwards.

    Args:
        task: The fields of a ``Task``.
        tell: Is given what happens, once a second.
        wanted: Whether it is to go on; asked as often.
        without: Variables of the environment that the process is not to have.

    Returns:
        JSON that says how it ended and holds what was measured, as a text.
    """
    with tempfile.TemporaryDirectory(
        prefix="perfkit-fleet-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        (folder / _TOLD).write_text("{}")
        with (
            (folder / "log.txt").open("wb") as log,
            subprocess.Popen(
                [sys.executable, "-m", "perfkit.fleet.process", json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={k: v for k, v in os.environ.items() if k not in without},
                # One signal then ends it and what it starts.
                start_new_session=True,
            ) as child,
        ):
            try:
                while not _has_ended(child, _BEAT_S):
                    tell(json.loads((folder / _TOLD).read_bytes()))
                    if not wanted():
                        child.stdin.close()  # type: ignore[union-attr]
                        _has_ended(child, _KILLED_S)
                        break
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
        log_end = (folder / "log.txt").read_bytes()[-_TAIL:].decode(errors="replace")
        killed = {"how": "failed", "why": _last_words(log_end, child.returncode)}
        sent = killed | json.loads((folder / _TOLD).read_bytes())
        saved = sorted((folder / _FOUND).glob("*.json"))
        sent["document"] = saved[-1].read_text("utf-8", "replace") if saved else ""
    return json.dumps(sent).encode()


def _has_ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    return child.returncode is not None


def _last_words(log: str, code: int) -> str:
    last = log.strip().splitlines()[-1:]
    said = f"; its last words: {last[0].strip()}" if last else ""
    by = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"Its run ended with {by} before it was done{said}"


# What follows runs in the process itself, whose folder is the current one.


class _Teller(Display):
    """Draws a board as a small file.

    Attributes:
        late: That its time is up, in a sentence; "" before.
        making: The passport that several runs are made for; None for one run.
    """

    late = ""
    making: "Making | None" = None
    _last = ""

    def say(self, **told: Any) -> None:
        """Put in the place of what was told before."""
        new = Path(f"{_TOLD}.{threading.get_ident()}")
        new.write_text(json.dumps(told))
        new.replace(_TOLD)

    def _draw(self, board: Board) -> None:
        self._last = f" The last that it told: {board.doing}."
        if self.making is not None:
            # The board is that of one of its runs.
            spent, budget = self.making.spent, self.making.budget
            board = Board(doing=board.doing, spent=spent, expected=budget)
        self.say(doing=board.doing, share=board.share, left=board.left)

    def end_in_time(self, seconds: float) -> None:
        """End all of it when the input is closed, or was open for so long."""
        if not select.select([0], [], [], seconds)[0]:
            self.late = f"It was stopped when its time was up.{self._last}"
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(_GRACE_S)
        self.say(how="failed", why="It did not end when stopped, and was killed.")
        os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Do the task that is given, and tell how it ended."""
    # Who starts it may ignore interrupts, and it would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    task, teller = Task(**json.loads(sys.argv[1])), _Teller()
    try:
        watcher = threading.Thread(
            target=teller.end_in_time, args=(task.seconds,), daemon=True
        )
        watcher.start()
        stopped, unsaved = (_run if task.experiment else _passport)(task, teller)
        how = "failed" if unsaved else "stopped" if stopped else "completed"
        teller.say(how=how, why=unsaved or teller.late)
    except PerfkitError as error:
        teller.say(how="failed", why=str(error))
    except KeyboardInterrupt:
        nothing = "Nothing had been measured when it was stopped."
        teller.say(how="stopped", why=teller.late or nothing)


def _run(task: Task, teller: _Teller) -> tuple[bool, str]:
    """Leave a finding; whether it was stopped, and why it could not be saved."""
    chosen = experiment(task.experiment, **task.parameters)
    ours, theirs = tensorflow_here(), task.tensorflow
    if "tensorflow" in chosen.needs and theirs and ours and theirs != ours:
        raise RunError(
            f"It has TensorFlow {ours} and the asking machine has {theirs}: that is "
            "not the same job, so it was not measured; install one version on both."
        )
    session = runs.open_session(chosen, task.budget, seed=task.seed, folder=_FOUND)
    finding = runs.watch(session, teller)
    return finding.stopped, session.unsaved


def _passport(task: Task, teller: _Teller) -> tuple[bool, str]:
    """Leave a passport, and tell the same."""
    from perfkit.machines.recording import Making

    making = Making(task.budget, task.label, Path(_FOUND) / "passport.json")
    teller.making = making
    making.make(teller)
    return making.stopped, making.unsaved


if __name__ == "__main__":
    main()
