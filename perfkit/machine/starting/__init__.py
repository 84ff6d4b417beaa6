"""What does TensorFlow do when it starts? Tried in a process of its own.

Whatever that process told before it crashed or hung is kept, and a sentence says how it
ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.machine import environment
from perfkit.machine.record import Proof, Start
from perfkit.machine.starting import child
from perfkit.machine.starting.log import loaded, said
from perfkit.machine.starting.process import watched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perfkit.machine.starting.process import Ended

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
            '`pip install "perfkit[tensorflow]"`.'
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
    return f"TensorFlow's process {_how(ended.code)} while {doing}{last}"


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    # Of the signals that a system keeps for programs not every one has a name.
    name = {s.value: s.name for s in signal.Signals}.get(-code, f"signal {-code}")
    return f"was ended by {name}{_HINTS.get(name, '')}"


def _sentence(text: str, names: tuple[str, ...]) -> str:
    return " ".join(environment.cleaned(text, names, _LONGEST).split())
