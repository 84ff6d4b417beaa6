"""Runs one measurement on a member of a fleet, and ends it when it is time to.

It has a process of its own, so that one that hangs or crashes takes nobody along.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from perfkit.findings.text import plain
from perfkit.fleet.outcome import BEAT_S, Broken, Doing, Home, Member

if TYPE_CHECKING:
    from perfkit.fleet.outcome import News, Task


_SLICE_S = 0.25
# What Stop is given to keep what was measured; then it is ended.
_GRACE_S = 4.0
_TAIL = 4000
Tell = Callable[[dict[str, Any]], None]
GO_ON, STOP = "go on", "stop"


class Child:
    """The process that measures, seen from outside.

    Args:
        task: What it is to do.
        folder: Where it works.
        without: Variables of the environment that it is not to have.
    """

    def __init__(
        self, task: dict[str, Any], folder: Path, without: Collection[str] = ()
    ) -> None:
        self._log = (folder / "log.txt").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "perfkit.fleet.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_made(folder / "work"),
            env={k: v for k, v in os.environ.items() if k not in without},
            # One signal then ends it and what it starts.
            start_new_session=True,
        )
        self.doing: dict[str, Any] = {}
        self.document = ""
        self.ended: tuple[str, str] | None = None
        self._folder = folder
        self._input: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        self._write(json.dumps(task).encode() + b"\n")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, seconds: float) -> bool:
        """Wait so long; True once it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def beat(self) -> None:
        """Let it know that somebody still wants it."""
        self._write(b".")

    def stop(self) -> None:
        """Ask it to end with what it has."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """End it and what it started, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(1)
        with contextlib.suppress(OSError):
            self._input.close()
        self._log.close()

    def found(self) -> str:
        """What it measured as JSON: as it told it, or as it saved it last; or ""."""
        saved = sorted((self._folder / "work").glob("*.json"))
        if self.document or not saved:
            return self.document
        return saved[-1].read_text(encoding="utf-8", errors="replace")

    def how(self) -> tuple[str, str]:
        """How it ended, and why in a sentence."""
        if self.ended:
            return self.ended
        text = (self._folder / "log.txt").read_bytes()[-_TAIL:].decode(errors="replace")
        last = text.strip().splitlines()[-1:]
        said = f"; its last words: {last[0].strip()}" if last else ""
        code = self._process.returncode
        by = f"signal {-code}" if code < 0 else f"exit code {code}"
        return "failed", f"Its run ended with {by} before it was done{said}"

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._input.write(data)
            self._input.flush()

    def _read(self) -> None:
        told: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        with told:
            for line in told:
                # Half a line is the last of one that was killed.
                with contextlib.suppress(ValueError):
                    self._hear(json.loads(line))

    def _hear(self, told: dict[str, Any]) -> None:
        match told:
            case {"kind": "doing", "doing": doing, "share": share, "left": left}:
                self.doing = {"doing": doing, "share": share, "left": left}
            case {"kind": "document", "text": text}:
                self.document = text
            case {"kind": "ended", "how": how, "why": why}:
                self.ended = (how, why)


def supervise(
    task: dict[str, Any],
    tell: Tell,
    wanted: Callable[[], str],
    *,
    without: Collection[str] = (),
) -> bytes:
    """Do a task in a process of its own; nothing of it is left afterwards.

    Args:
        task: The fields of a ``Task``.
        tell: Is given what happens, at least once a second.
        wanted: Says ``"go on"``; anything else is Stop.
        without: Variables of the environment that the process is not to have.

    Returns:
        JSON that says how it ended and holds what was measured, as a text.
    """
    with tempfile.TemporaryDirectory(
        prefix="perfkit-fleet-", ignore_cleanup_errors=True
    ) as folder:
        child = Child(task, Path(folder), without)
        try:
            late = _see_through(child, task["seconds"], tell, wanted)
        finally:
            child.end()
        how, why = child.how()
        told = {"how": how, "why": late or why, "document": child.found()}
    return json.dumps(told).encode()


def _see_through(
    child: Child, seconds: float, tell: Tell, wanted: Callable[[], str]
) -> str:
    """Return when it has ended; say so if it had to be ended before it was done."""
    began = told = time.monotonic()
    stopped, late = None, ""
    tell(child.doing)
    while not child.wait(_SLICE_S):
        child.beat()
        now = time.monotonic()
        if now - told >= BEAT_S:
            told = now
            tell(child.doing)
        if stopped is None and (now - began > seconds or wanted() != GO_ON):
            late = "" if wanted() != GO_ON else _late(child.doing)
            stopped = now
            child.stop()
        if stopped is not None and now - stopped > _GRACE_S:
            return "It did not end when it was stopped, and was killed."
    return late


def _late(doing: dict[str, Any]) -> str:
    last = doing.get("doing", "")
    told = f" The last that it told: {last}." if last else ""
    return f"It was stopped when its time was up.{told}"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


_HERE = "here"
_CLOSING_S = 10.0


class Here:
    """This machine as the only member.

    Attributes:
        members: That one.
    """

    def __init__(self) -> None:
        self.members = (Member(key=_HERE, host=_HERE, name="this machine"),)
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, member: Member, task: Task) -> None:
        """Let it do a task."""
        told = dataclasses.asdict(task)
        self._thread = threading.Thread(target=self._do, args=(told,), daemon=True)
        self._thread.start()

    def heard(self, timeout: float) -> list[News]:
        """Wait so long for news, and give it."""
        return drained(self._news, timeout)

    def beat(self, over: Collection[str], *, stop: bool) -> None:
        """Say who has nothing to do any more, and whether all is to be stopped."""
        if stop or over:
            self._over.set()

    def close(self) -> None:
        """End what still runs."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_CLOSING_S)

    def _do(self, told: dict[str, Any]) -> None:
        try:
            data = supervise(told, self._tell, self._wanted)
        except OSError as error:
            self._news.put(Broken(_HERE, f"The system refused: {plain(str(error))}."))
        else:
            self._news.put(Home(_HERE, data))

    def _tell(self, doing: dict[str, Any]) -> None:
        self._news.put(Doing(_HERE, **doing))

    def _wanted(self) -> str:
        return STOP if self._over.is_set() else GO_ON


def drained(news: queue.SimpleQueue[News], timeout: float) -> list[News]:
    """Wait for the first news, and take what came with it."""
    found: list[News] = []
    with contextlib.suppress(queue.Empty):
        found.append(news.get(timeout=timeout))
        while True:
            found.append(news.get_nowait())
    return found
