"""A process, watched from outside: it may crash, hang, or print without an end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Of each end of what is printed; more explains nothing more.
_KEPT = 1 << 19
# What lies in a pipe that nobody writes to any more is there at once.
_REST_S = 5.0


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
