"""A small experiment without TensorFlow, whose answer is known."""

import errno
import threading
from dataclasses import dataclass
from typing import Annotated, ClassVar

from perfkit.engine.trial import READY, REFUSED, Note, every
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment, Folder, Range, variant


@dataclass(frozen=True, kw_only=True)
class Loops(Experiment):
    """Does a longer loop take longer?"""

    name: ClassVar[str] = "loops"
    baseline: ClassVar[str] = "short"
    needs: ClassVar[tuple[str, ...]] = ()

    size: Annotated[int, Range(100, 1_000_000, help="Numbers to add up")] = 20_000

    @variant
    def short(self):
        """The loop as it is."""
        yield READY
        yield from every(_adding(self.size))

    @variant
    def double(self):
        """Twice the numbers."""
        yield READY
        yield from every(_adding(2 * self.size))

    def prepare(self):
        """Tell how many."""
        yield Note("numbers", self.size)

    def verdict(self, measured):
        """Say what the comparison says."""
        (comparison,) = measured.comparisons
        return Verdict(headline=str(comparison), winner="short")


@dataclass(frozen=True, kw_only=True)
class Stuck(Loops):
    """Does a run stop while a trial gives no sign of life?"""

    name: ClassVar[str] = "stuck"

    @variant
    def short(self):
        """Wait for ever before it is ready."""
        threading.Event().wait()
        yield READY


@dataclass(frozen=True, kw_only=True)
class SlowToPrepare(Loops):
    """Does a run stop while its data are made?"""

    name: ClassVar[str] = "slow-to-prepare"

    def prepare(self):
        """Never end."""
        threading.Event().wait()
        yield READY


@dataclass(frozen=True, kw_only=True)
class NoRoom(Loops):
    """What does a run say when its data do not fit on the disk?"""

    name: ClassVar[str] = "no-room"

    def prepare(self):
        """Fail as a full disk does."""
        raise OSError(errno.ENOSPC, "No space left on device")
        yield READY


@dataclass(frozen=True, kw_only=True)
class InAFolder(Loops):
    """Does it matter where a loop runs?"""

    name: ClassVar[str] = "in-a-folder"

    where: Annotated[str, Folder(help="Anywhere")] = ""


@dataclass(frozen=True, kw_only=True)
class Leaky(InAFolder):
    """What does a run say of files that are not there?"""

    name: ClassVar[str] = "leaky"

    @variant
    def broken(self):
        """Look for one once it is ready."""
        yield READY
        raise FileNotFoundError(errno.ENOENT, "There is none", f"{self.where}/a b.csv")

    @variant
    def refused(self):
        """Never begin."""
        yield READY

    def prepare(self):
        """Refuse one of them."""
        yield Note(REFUSED, {"refused": f"It raised OSError: '{self.where}/x'"})


def _adding(size):
    while True:
        sum(range(size))
        yield 1
