"""What does TensorFlow do when it starts? Tried in a process of its own.

Whatever that process told before it crashed or hung is kept, and a sentence says how it
ended.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from perfkit import units
from perfkit.errors import installing
from perfkit.machine import environment
from perfkit.machine.record import Proof, Start
from perfkit.machine.starting import child
from perfkit.machine.starting.log import loaded, said

# Importing takes 3 to 20 s. A card that is newer than its TensorFlow may take half an
# hour, which nobody waits for.
LIMIT_S = 90.0
# What is said begins so where nothing but time was lacking.
LATE = "Ended after"
_LONGEST = 300
_LOGGING = ("TF_CPP_MIN_LOG_LEVEL", "TF_CPP_MAX_VLOG_LEVEL", "TF_CPP_VMODULE")
_HINTS = {
    "SIGILL": " (this processor lacks an instruction that this TensorFlow needs: "
    "install a build for it)",
    "SIGKILL": " (the system does that when memory runs out)",
}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        told: The beginning and the end of its standard output.
        log: The same of its standard error.
        code: Its exit code; the negative number of the signal that ended it.
        late: Whether it was ended because its time was over.
    """

    told: str
    log: str
    code: int
    late: bool


def started(
    limit: float = LIMIT_S,
    command: Sequence[str] = (),
    variables: Mapping[str, str] = os.environ,
) -> Start:
    """Start TensorFlow with its log on, and let each of its devices compute.

    It never raises for what TensorFlow does: ``problem`` says what went wrong.

    Args:
        limit: Seconds after which it is ended.
        command: What to run instead of the script that starts TensorFlow.
        variables: The environment to start it in, where only logging is changed.
    """
    given = {name: text for name, text in variables.items() if name not in _LOGGING}
    try:
        ended = watched(
            command or (sys.executable, "-P", child.__file__),
            given | {"TF_CPP_MIN_LOG_LEVEL": "0"},
            limit,
        )
    except OSError as error:
        return Start(problem=f"No process could be started ({error.strerror}).")
    names = environment.own_names()
    told = list(_told(ended.told))
    facts = {name: value for message in told for name, value in message.items()}
    proofs = (message["proof"] for message in told if "proof" in message)
    return Start(
        seconds=facts.get("seconds"),
        said=said(ended.log, names),
        devices=tuple(facts.get("devices", ())),
        proofs=tuple(_proof(proof, names) for proof in proofs),
        loaded=loaded(facts.get("maps", ()), variables),
        problem=_problem(ended, facts, names, limit),
    )


def _told(text: str) -> Iterator[dict[str, Any]]:
    """What the process told, line by line; it may have ended in the middle of one."""
    for line in text.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            yield message


def _proof(proof: dict[str, Any], names: tuple[str, ...]) -> Proof:
    return Proof(**proof | {"problem": _sentence(proof["problem"], names)})


def _problem(
    ended: Ended, facts: dict[str, Any], names: tuple[str, ...], limit: float
) -> str:
    """Why TensorFlow could not be started, or not be tried to the end."""
    if facts.get("missing") == "tensorflow":
        return (
            "TensorFlow is not installed in this environment; install it with "
            f"`{installing('tensorflow')}`."
        )
    doing = facts.get("doing", "starting Python")
    if "error" in facts:
        return f"Failed while {doing}: {_sentence(facts['error'], names)}"
    if ended.late:
        return f"{LATE} {units.seconds(limit)}, while {doing}."
    if "compiled" in facts:
        return ""
    lines = ended.log.strip().splitlines()
    last = f"; its last words: {_sentence(lines[-1], names)}" if lines else ""
    return f"TensorFlow's process {how_ended(ended.code)} while {doing}{last}"


def how_ended(code: int | None) -> str:
    """How a process ended that left this exit code, or minus a signal's number."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    # Of the signals that a system keeps for programs not every one has a name.
    name = {s.value: s.name for s in signal.Signals}.get(-code, f"signal {-code}")
    return f"was ended by {name}{_HINTS.get(name, '')}"


def _sentence(text: str, names: tuple[str, ...]) -> str:
    return " ".join(environment.cleaned(text, names, _LONGEST).split())


# Of each end of what is printed; more explains nothing more.
_KEPT = 1 << 19
# What lies in a pipe that nobody writes to any more is there at once.
_REST_S = 5.0


def watched(
    command: Sequence[str], variables: Mapping[str, str], limit: float
) -> Ended:
    """Run a command to its end, or for so many seconds; nothing it started stays.

    Its standard input stays open for as long as somebody waits for it.

    Raises:
        OSError: It cannot be started.
    """
    process = subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    told, log = _Kept(process.stdout), _Kept(process.stderr)
    late = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        _end(process)
        process.stdin.close()
    return Ended(told=told.text(), log=log.text(), code=process.wait(), late=late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and its group, which may go on when it has ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


class _Kept:
    """Reads a pipe to its end and keeps the beginning and the end of what came."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._first, self._last = bytearray(), bytearray()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while part := os.read(self._pipe.fileno(), 1 << 16):
            room = _KEPT - len(self._first)
            self._first += part[:room]
            self._last += part[room:]
            del self._last[:-_KEPT]
        self._pipe.close()

    def text(self) -> str:
        self._reading.join(_REST_S)
        parts = (bytes(part) for part in (self._first, self._last) if part)
        return "\n".join(part.decode(errors="replace") for part in parts)
