"""What does TensorFlow do when it starts? Tried in a process of its own.

Whatever that process told before it crashed or hung is kept, and a sentence says how it
ended. The lines of its log that matter are told, each with what it means.
"""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import IO, Any

from perfkit import units
from perfkit.errors import installing
from perfkit.machine import environment
from perfkit.machine.record import Proof, Said, Start, Weight
from perfkit.machine.starting import child

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


def started(
    limit: float = LIMIT_S,
    command: Sequence[str] = (),
    variables: Mapping[str, str] = os.environ,
) -> Start:
    """Start TensorFlow with its log on, and let each of its devices compute.

    It never raises for what TensorFlow does: ``problem`` says what went wrong. After
    ``limit`` seconds it is ended.
    """
    inherited = {name: text for name, text in variables.items() if name not in _LOGGING}
    try:
        output, log, code = watched(
            command or (sys.executable, "-P", child.__file__),
            inherited | {"TF_CPP_MIN_LOG_LEVEL": "0"},
            limit,
        )
    except OSError as error:
        return Start(problem=f"No process could be started ({error.strerror}).")
    names = environment.own_names()
    messages = list(_messages(output))
    facts = {name: value for message in messages for name, value in message.items()}
    proofs = [message["proof"] for message in messages if "proof" in message]
    return Start(
        seconds=facts.get("seconds"),
        said=explain_log(log, names),
        devices=tuple(facts.get("devices", ())),
        proofs=tuple(
            Proof(**proof | {"problem": _sentence(proof["problem"], names)})
            for proof in proofs
        ),
        problem=_problem(log, code, facts, names, limit),
    )


def _messages(text: str) -> Iterator[dict[str, Any]]:
    """What the process told, line by line; it may have ended in the middle of one."""
    for line in text.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            yield message


def _problem(
    log: str,
    code: int | None,
    facts: dict[str, Any],
    names: tuple[str, ...],
    limit: float,
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
    if code is None:
        return f"{LATE} {units.seconds(limit)}, while {doing}."
    if "compiled" in facts:
        return ""
    lines = log.strip().splitlines()
    last = f"; its last words: {_sentence(lines[-1], names)}" if lines else ""
    return f"TensorFlow's process {how_ended(code)} while {doing}{last}"


def how_ended(code: int | None) -> str:
    """How a process ended that left this exit code, or minus a signal's number."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    # Of the signals that a system keeps for programs not every one has a name.
    name = {s.value: s.name for s in signal.Signals}.get(-code, f"signal {-code}")
    return f"was ended by {name}{_HINTS.get(name, '')}"


def _sentence(text: str, names: tuple[str, ...]) -> str:
    return " ".join(environment.anonymize(text, names, _LONGEST).split())


# Of what is printed; more explains nothing more.
_KEPT = 1 << 24


def watched(
    command: Sequence[str], variables: Mapping[str, str], limit: float
) -> tuple[str, str, int | None]:
    """Run a command to its end, or for so many seconds; nothing it started stays.

    Its standard input stays open for as long as somebody waits for it. It gives its
    output, its standard error and its exit code: minus the number of the signal that
    ended it, None where time was over.
    """
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        code = None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # Its group may go on when it has ended itself.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.name == "posix":
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
            process.wait()
        return _text_of(output), _text_of(log), code


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_KEPT).decode(errors="replace")


def explained(message: str) -> tuple[Weight, str] | None:
    """How much a message of the log matters, and what it means; None for unknown."""
    return next((told for text, told in patterns() if text.search(message)), None)


@functools.cache
def patterns() -> tuple[tuple[re.Pattern[str], tuple[Weight, str]], ...]:
    """All kinds of line that are known, in the order in which they are looked for."""
    table = files(__package__).joinpath("patterns.toml").read_text(encoding="utf-8")
    return tuple(
        (re.compile(text), (weight, meaning))
        for text, (weight, meaning) in tomllib.loads(table).items()
    )


# Both ways in which TensorFlow begins a line: with a date and a file, and as absl does.
_HEAD = re.compile(
    r"^\s*(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: )?[IWEF]"
    r"(?:\d{4} \d\d:\d\d:[\d.]+\s+\d+)? \S+?:\d+\] ?"
)
# What absl says once, without a head, before its first line.
_BEFORE = "All log messages before absl::InitializeLog() is called"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_POINTER = re.compile(r"\b0x[0-9a-fA-F]{3,}\b")
_NUMBER = re.compile(r"\d+")
# These lines hold the host's name, whatever it is.
_HOST = re.compile(r"((?:for host|hostname): |running on this host \()[^\s):]+")
_LONGEST_LINE = 240
_MOST_LINES = 40


def explain_log(log: str, names: Iterable[str] = ()) -> tuple[Said, ...]:
    """Explain the lines of a log that keep a GPU away or cost speed, in its order.

    A line that differs from an earlier one in its numbers alone is left out, and so
    are the names.
    """
    lines = dict[str, Said]()
    hidden = tuple(names)
    # One that goes on is one more line.
    for text in _ESCAPE.sub("", log).splitlines():
        message = _HEAD.sub("", text).strip()
        # It is looked up as it was said: a user's name may be a word of the message.
        weight, meaning = explained(message) or ("harmless", "")
        if weight == "harmless":
            continue
        line = _POINTER.sub("0x…", _HOST.sub(r"\1<name>", message))
        line = " ".join(environment.anonymize(line, hidden, _LONGEST_LINE).split())
        note = Said(line=line, meaning=meaning, weight=weight)
        lines.setdefault(_NUMBER.sub("#", line), note)
    return tuple(lines.values())[:_MOST_LINES]


def unlogged(output: str) -> str:
    """What a process printed itself: its output without TensorFlow's log."""
    lines = output.splitlines(keepends=True)
    return "".join(
        line for line in lines if not _HEAD.match(line) and _BEFORE not in line
    )
