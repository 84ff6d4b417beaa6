"""Can every laptop of a class run the notebooks? Each sends a short code beforehand.

A code holds what matters of a machine, and a check: one that was mistyped is refused.
Whoever teaches keeps a list of the class, ``codes.txt``, a name per line and the code
behind it: ``Ada 41S0-0C2R-M8ZV``. A line without one has not answered.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.text import plain
from perfkit.machine.checks import base
from perfkit.machine.record import Machine, Start
from perfkit.machine.starting.child import is_right

if TYPE_CHECKING:
    from pathlib import Path

LIST = "codes.txt"
# Left out: I, L, O and U, which are read as others. These are what is meant by them.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MEANT = str.maketrans("ILO", "110")
_GROUPS, _IN_GROUP = 3, 4
# What a code holds, and how many values of it there are; the last stands for more, too.
# Together 45 bits, and 15 of the check: 12 letters.
_FIELDS = {
    "layout": 16,
    "cores": 128,
    "memory_gb": 256,
    "disk_gb": 512,
    "python": 16,
    "tensorflow": 64,
    "gpus": 8,
    "unused_gpus": 8,
    "starts": 2,
}
_LAYOUT = 1
_CHECKS = 1 << 15
_GB = 1e9
# A class has fewer lines; a file with more is none of these lists.
_LONGEST_LIST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Laptop:
    """What a code says of a machine.

    Attributes:
        cores: That a process may use.
        memory_gb: Of RAM; ``disk_gb`` are those that are free.
        python: Its version behind ``3.``.
        tensorflow: Its version behind ``2.``; 0 where there is none.
        gpus: On which TensorFlow computed right; ``unused_gpus`` are the others.
        starts: Whether TensorFlow starts.
    """

    cores: int
    memory_gb: int
    disk_gb: int
    python: int
    tensorflow: int
    gpus: int = 0
    unused_gpus: int = 0
    starts: int = 1

    def __str__(self) -> str:
        """Everything that is in the code, in a line."""
        gpus = [f"{self.gpus} GPU{'s' * (self.gpus > 1)}"] * bool(self.gpus)
        gpus += [f"{self.unused_gpus} GPU not used"] * bool(self.unused_gpus)
        software = f"TensorFlow 2.{self.tensorflow}"
        return ", ".join(
            (
                f"{self.cores} core{'s' * (self.cores > 1)}",
                f"{self.memory_gb} GB of memory",
                f"{self.disk_gb} GB of disk free",
                f"Python 3.{self.python}",
                software if self.tensorflow else "no TensorFlow",
                " and ".join(gpus) or "no GPU",
            )
        )

    @property
    def machine(self) -> Machine:
        """The machine, as far as a code tells it."""
        has = {"tensorflow": f"2.{self.tensorflow}"} if self.tensorflow else {}
        fails = bool(has) and not self.starts
        return Machine(
            cpu="a laptop",
            cores=self.cores,
            cores_granted=self.cores,
            memory=int(self.memory_gb * _GB),
            system="unknown",
            python=f"3.{self.python}",
            versions={"numpy": "", **has},
            start=Start(problem="this was tried there" if fails else ""),
        )

    @property
    def code(self) -> str:
        """Twelve letters and digits, in groups of four."""
        number = 0
        for name, values in _FIELDS.items():
            value = _LAYOUT if name == "layout" else getattr(self, name)
            number = number * values + max(0, min(value, values - 1))
        number = number * _CHECKS + _check(number)
        letters = ""
        for _ in range(_GROUPS * _IN_GROUP):
            number, letter = divmod(number, len(_LETTERS))
            letters = _LETTERS[letter] + letters
        return "-".join(re.findall("." * _IN_GROUP, letters))


def _check(number: int) -> int:
    digest = hashlib.blake2s(str(number).encode()).digest()
    return int.from_bytes(digest[:4], "big") % _CHECKS


def laptop(machine: Machine, folder: str | Path = ".") -> Laptop:
    """What is to be told of a machine on which TensorFlow was started.

    Args:
        machine: With its ``start``.
        folder: Where the notebooks lie.
    """
    proofs = machine.start.proofs if machine.start else ()
    computed = {proof.device for proof in proofs if proof.device.startswith("GPU")}
    wrong = {proof.device for proof in proofs if not is_right(proof)}
    used = len(computed - wrong)
    version = machine.versions.get(base.distribution(machine), "")
    return Laptop(
        cores=max(1, int(machine.cores_granted)),
        memory_gb=round(machine.memory / _GB),
        disk_gb=int(shutil.disk_usage(folder).free / _GB),
        python=int(machine.python.split(".")[1]),
        tensorflow=int(version.split(".")[1]) if "." in version else 0,
        gpus=used,
        unused_gpus=max(0, len(machine.gpus) - used),
        starts=int(bool(machine.start and not machine.start.problem)),
    )


def read_code(text: str) -> Laptop:
    """Understand a code, in capitals or not, with any dashes.

    Raises:
        BadParameterError: It is mistyped, or from another version of perfkit.
    """
    letters = re.sub(r"[^0-9A-Z]", "", text.upper()).translate(_MEANT)
    places = [_LETTERS.find(letter) for letter in letters]
    number = 0
    for place in places:
        number = number * len(_LETTERS) + place
    number, check = divmod(number, _CHECKS)
    if len(places) != _GROUPS * _IN_GROUP or -1 in places or check != _check(number):
        raise BadParameterError(f"{plain(text, 20)!r} is mistyped; ask for it again.")
    found = {}
    for name, values in reversed(_FIELDS.items()):
        number, found[name] = divmod(number, values)
    if found.pop("layout") != _LAYOUT:
        raise BadParameterError(
            f"{plain(text, 20)!r} is a code of another version of perfkit; let both "
            "have the same."
        )
    return Laptop(**found)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A line of the list.

    Attributes:
        name: Who it is about.
        laptop: What their code says; None where there is none, or none to be read.
        problem: Why it cannot be read, in a sentence; "" otherwise.
    """

    name: str
    laptop: Laptop | None = None
    problem: str = ""


def answers(folder: Path) -> tuple[Answer, ...]:
    """Read the list that lies in a folder, if one does; of two codes the later counts.

    Raises:
        BadFileError: It cannot be read.
    """
    path = folder / LIST
    if not path.is_file():
        return ()
    try:
        if path.stat().st_size > _LONGEST_LIST:
            raise BadFileError(f"{LIST} is too long for a list of a class; shorten it.")
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise BadFileError(f"{LIST} cannot be read ({error.strerror}).") from error
    found = dict[str, Answer]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            answer = _answer(line.strip(), number)
            found[answer.name.casefold()] = answer
    return tuple(found.values())


def _answer(line: str, number: int) -> Answer:
    """Part a line into a name and a code; a name may have several words."""
    *before, last = re.split(r"[\s,;:]+", line)
    name = plain(" ".join(before), 60) or f"line {number}"
    try:
        return Answer(name=name, laptop=read_code(last))
    except BadParameterError as error:
        # Whoever has not answered may bear a name with dashes.
        if last.count("-") == _GROUPS - 1 and re.search(r"\d", last):
            return Answer(name=name, problem=str(error))
        return Answer(name=plain(line, 60))
