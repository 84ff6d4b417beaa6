"""Can every laptop of a class run the notebooks? Each sends a short code beforehand.

A code holds what matters of a machine, and a check: one that was mistyped is refused.
Whoever teaches keeps a list of the class, ``codes.txt``, a name per line and the code
behind it: ``Ada 2410-CJTM-18RC``. A line without one has not answered. Codes come by
mail and by hand: small letters, blanks for dashes, quotes and a remark do no harm.
"""

import codecs
import hashlib
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.text import plain
from perfkit.machine.checks import base, cores
from perfkit.machine.record import Machine, Start
from perfkit.machine.starting.child import is_right

LIST = "codes.txt"
# What to do about programs that keep a laptop busy.
END = "end them before the lesson"
# Left out: I, L, O and U, which are read as others. These are what is meant by them.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MEANT = str.maketrans("ILO", "110")
_GROUPS, _IN_GROUP = 3, 4
# What a code holds, and how many values of it there are; the last stands for more, too.
# Together 45 bits, and 15 of the check: 12 letters.
_FIELDS = {
    # Half of what "layout" had at first, so that older codes are read as not busy.
    "busy": 2,
    "layout": 8,
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
# What lists and mails put between a name and a code.
_BETWEEN = " \t,;:|\"'-\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"


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
        busy: Whether other programs took cores that a training would use, then.
    """

    cores: int
    memory_gb: int
    disk_gb: int
    python: int
    tensorflow: int
    gpus: int = 0
    unused_gpus: int = 0
    starts: int = 1
    busy: int = 0

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
                *["busy"] * self.busy,
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


def laptop(machine: Machine) -> Laptop:
    """What is to be told of a machine on which TensorFlow was started."""
    proofs = machine.start.proofs if machine.start else ()
    computed = {proof.device for proof in proofs if proof.device.startswith("GPU")}
    wrong = {proof.device for proof in proofs if not is_right(proof)}
    used = len(computed - wrong)
    version = machine.versions.get(base.distribution(machine), "")
    return Laptop(
        cores=max(1, int(machine.cores_granted)),
        memory_gb=round(machine.memory / _GB),
        disk_gb=int(shutil.disk_usage(".").free / _GB),
        python=int(machine.python.split(".")[1]),
        tensorflow=int(version.split(".")[1]) if "." in version else 0,
        gpus=used,
        unused_gpus=max(0, len(machine.gpus) - used),
        starts=int(bool(machine.start and not machine.start.problem)),
        busy=int(bool(kept_busy(machine))),
    )


def kept_busy(machine: Machine) -> str:
    """Which share of its cores other programs take, in a sentence; "" if hardly any."""
    found = (one.evidence for one in cores.busy(machine) if one.status != "ok")
    return next(found, "")


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
        line: Which one it is, from 1.
        laptop: What their code says; None where there is none, or none to be read.
        problem: Why it cannot be read, in a sentence; "" otherwise.
        is_again: Whether a line above has another code and the same name.
    """

    name: str
    line: int = 0
    laptop: Laptop | None = None
    problem: str = ""
    is_again: bool = False


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
        lines = _text(path.read_bytes()).splitlines()
    except OSError as error:
        raise BadFileError(f"{LIST} cannot be read ({error.strerror}).") from error
    found = dict[str, Answer]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            answer = _answer(line, number)
            name = answer.name.casefold()
            before = found.get(name, answer)
            # A name alone, such as the next in the register, takes no answer back.
            if not (answer.laptop or answer.problem):
                answer = before
            again = before.is_again or before.laptop not in (None, answer.laptop)
            found[name] = replace(answer, is_again=again)
    return tuple(found.values())


def _text(data: bytes) -> str:
    """Decode a list that any editor wrote; one on Windows may write two bytes each."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if wide else "utf-8", errors="replace")
    # Where files were put together, the mark of a beginning is in the middle.
    return text.replace("\ufeff", "")


def _answer(line: str, number: int) -> Answer:
    """Part a line into a code and a name, which may have several words."""
    name, problem = _name(line), ""
    for start, end in _like_codes(line):
        code, rest = line[start:end], (line[:start], line[end:])
        without = " ".join(filter(None, map(_name, rest))) or f"line {number}"
        try:
            return Answer(name=without, line=number, laptop=read_code(code))
        except BadParameterError as error:
            if not problem and _is_meant(code):
                name, problem = without, f"{LIST}, line {number}: {error}"
    return Answer(name=name or f"line {number}", line=number, problem=problem)


def _is_meant(code: str) -> bool:
    """Whether it can be no name: whoever has not answered may have one as long."""
    digits = len(re.findall(r"\d", code))
    return digits > 2 or (digits > 0 and code.count("-") == _GROUPS - 1)


def _like_codes(line: str) -> list[tuple[int, int]]:
    """Where words are as long as a code, give or take one; the likeliest first."""
    words, found = list(re.finditer(r"[^\W_]+", line)), []
    for first, word in enumerate(words):
        letters = ""
        for last in words[first:]:
            letters += last[0]
            off = len(letters) - _GROUPS * _IN_GROUP
            if off > 1:
                break
            if off >= -1:
                digits = len(re.findall(r"\d", letters))
                found.append((abs(off), -digits, word.start(), last.end()))
    return [(start, end) for _, _, start, end in sorted(found)]


def _name(text: str) -> str:
    """A name without what parts it from a code."""
    name = text.lstrip(_BETWEEN + ")]>").rstrip(_BETWEEN + "([<")
    return plain(name, 60) if re.search(r"\w", name) else ""
