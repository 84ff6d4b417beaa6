"""Profile a few steps of a training: ``perfkit.profile(make_training)``.

xprof reads the trace; what it makes of it, and what it refuses, become records here.
"""

import datetime
import functools
import importlib.metadata
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit import __version__
from perfkit.engine.alone import Alone
from perfkit.engine.launcher import Started, launcher
from perfkit.engine.processes import in_process
from perfkit.engine.trial import Note
from perfkit.errors import BadFileError, BadParameterError, need
from perfkit.findings.profile import Op, Profile, ProfiledStep
from perfkit.machine.collect import machine
from perfkit.machine.environment import anonymize, check_trains
from perfkit.questions.replay import recordings_of, replay_from
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.maker import assigned, digest, maker, name_of
from perfkit.training.profile.course import STEPPED, stepped, traces

MOST_STEPS = 10
# After so many seconds a training, or what reads its trace, counts as hung.
_LONGEST_S, _LONGEST_READ_S = 300.0, 120.0
_PREFIX = "perfkit-profile-"


def profile(
    make_training: Callable[[], Any] | str | Path,
    /,
    *,
    steps: int = MOST_STEPS,
    replay: str | Path | None = None,
) -> Profile:
    """Trace a few steps of your training, and read the trace into tables.

    The training runs in a fresh process until it is warm. perfkit then times some steps
    without the tracer, with it, and without it again, to know what the tracer costs.
    Your code stays unchanged, and the trace is not kept.

    Args:
        make_training: The function as ``diagnose`` takes it, or
            ``"FILE.py:make_training"``.
        steps: Steps to trace, 1 to 10; more make the trace large and tell nothing new.
        replay: A recorded profile of exactly this code to show instead of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: ``make_training`` is not a training, or a value is not
            accepted.
        MissingPartError: xprof, which reads the trace, is not installed, there is no
            Keras 3 on TensorFlow, or there is no such recording.
        RunError: The training cannot be run; the sentence says why, and a note holds
            the traceback of your own code.
        BadFileError: The file of the recording is not a profile.
    """
    is_whole = isinstance(steps, int) and not isinstance(steps, bool)
    if not is_whole or not 1 <= steps <= MOST_STEPS:
        remedy = f"give a whole number from 1 to {MOST_STEPS}"
        raise BadParameterError(f"steps is {steps!r}; {remedy}.")
    make = maker(make_training)
    if where := replay_from(replay):
        profiles = recordings_of(name_of(make), digest(make), where, Profile)
        return replace(max(profiles, key=lambda p: p.recorded), replayed=True)
    need("xprof", "A profile", "profile")
    xprof = importlib.metadata.version("xprof")
    check_trains(os.environ | assigned(make))
    launcher().warm()
    recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
    # One after the other: two measurements at once would measure each other.
    alone = Alone("a profile")
    try:
        for _ in alone.wait(threading.Event()):
            continue
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            work = functools.partial(stepped, make, steps, folder)
            notes = notes_of(in_process(work, _LONGEST_S))
            tables, missing = read(folder)
    finally:
        alone.let_go()
    about = {"training": name_of(make), "recorded": recorded, "code": digest(make)}
    return gathered(notes, tables, missing, machine=machine(), xprof=xprof, **about)


def notes_of(ended: Started) -> dict[str, Any]:
    """The notes of a training that was stepped through; ``RunError`` if it was not."""
    if STEPPED not in ended.notes:
        raise failure.run_error(ended, "trace fewer steps")
    return dict(ended.notes[STEPPED])


def read(folder: str) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    """Read the tables of the trace in a folder, each in a process that may crash.

    Returns:
        Their rows, and in a sentence why there are none, by the name of the table.
    """
    tables, missing = dict[str, tuple[Any, ...]](), dict[str, str]()
    for name, (tool, *_) in TABLES.items():
        ended = in_process(functools.partial(_table, folder, tool), _LONGEST_READ_S)
        try:
            tables[name] = understand(name, ended.notes[tool])
        except BadFileError as error:
            missing[name] = str(error)
        except KeyError:
            reason = anonymize(ended.message).rstrip(".") or "gave nothing"
            missing[name] = f"xprof could not read this part of the trace: {reason}."
    return tables, missing


def _table(folder: str, tool: str) -> Iterator[Note]:
    from xprof.convert import raw_to_tool_data

    paths = [str(path) for path in traces(folder)]
    data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {})
    yield Note(tool, (data.decode() if isinstance(data, bytes) else data) or "")


_IDLE, _DEVICE = "IDLE", "device compute"
_PARTS = {
    "deviceComputeTimeMs": _DEVICE,
    "deviceToDeviceTimeMs": "device to device",
    "deviceCollectivesTimeMs": "between devices, together",
    "hostComputeTimeMs": "host compute",
    "kernelLaunchTimeMs": "kernel launch",
    "infeedTimeMs": "input",
    "outfeedTimeMs": "output",
    "compileTimeMs": "compilation",
    "otherTimeMs": "all other",
}
_WHOLE, _TIME = "stepTimeMs", "TimeMs"
_WRONG = (LookupError, TypeError, ValueError, AttributeError)


def _step(row: dict[str, Any]) -> ProfiledStep:
    parts = {
        _PARTS.get(name, name.removesuffix(_TIME)): float(value) / 1e3
        for name, value in row.items()
        if name.endswith(_TIME) and name != _WHOLE
    }
    seconds = float(row[_WHOLE]) / 1e3
    return ProfiledStep(name=str(row["stepnum"]), seconds=seconds, parts=parts)


def _op(row: dict[str, Any]) -> Op:
    return Op(
        name=str(row["operation"]),
        type=str(row["type"]),
        device="host" if str(row["host_or_device"]).lower() == "host" else "device",
        count=int(row["occurrences"]),
        total_s=float(row["total_time"]) / 1e6,
        self_s=float(row["total_self_time"]) / 1e6,
    )


# What each table of a profile is read from, a column that it has, and how.
TABLES: dict[str, tuple[str, str, Callable[[dict[str, Any]], Any]]] = {
    "steps": ("input_pipeline_analyzer", "stepnum", _step),
    "ops": ("framework_op_stats", "operation", _op),
}


def understand(name: str, text: str) -> tuple[Any, ...]:
    """Return the rows of a table, the most expensive first, without idle time.

    Raises:
        BadFileError: The text is no such table.
    """
    _, column, record_of = TABLES[name]
    try:
        records = map(record_of, _rows(json.loads(text), column))
        working = (row for row in records if getattr(row, "type", "") != _IDLE)
        return tuple(sorted(working, key=lambda row: -getattr(row, "self_s", 0.0)))
    except _WRONG as error:
        reason = f"{type(error).__name__}: {str(error)[:80]}"
        message = f"xprof gave a table that this perfkit cannot read ({reason})."
        raise BadFileError(message) from None


def _rows(data: Any, column: str) -> list[dict[str, Any]]:
    """The rows of the last table that has a column, by the ids of its columns."""
    for table in reversed(data if isinstance(data, list) else [data]):
        ids = [c["id"] for c in table.get("cols", ())]
        if column in ids:
            values = ([(c or {}).get("v") for c in row["c"]] for row in table["rows"])
            return [dict(zip(ids, row, strict=False)) for row in values]
    raise LookupError(f"there is no column {column}")


# More than any reader looks at; eager trainings name thousands of operations.
MOST = 500
_NO_STEPS = "xprof found no whole step in the trace; trace more of them."
_NO_DEVICE = (
    "The trace has no record of the GPU. That is common on WSL and in containers, and "
    "where NVIDIA's driver shows its counters to administrators alone."
)


def gathered(
    notes: dict[str, Any],
    tables: dict[str, tuple[Any, ...]],
    missing: dict[str, str],
    **about: Any,
) -> Profile:
    """Make a profile; what is not there is told in a sentence, and the rest is there.

    ``notes`` are those of ``course.stepped``, ``tables`` and ``missing`` what ``read``
    returns. All else is the profile's own.
    """
    steps, ops = (tables.get(name, ()) for name in TABLES)
    if not steps:
        missing = {"steps": _NO_STEPS} | missing
    of_device = [op for op in ops if op.device == "device"]
    of_device += [step for step in steps if step.parts.get(_DEVICE)]
    if notes["gpus"] and not of_device:
        missing = missing | {"device": _NO_DEVICE}
    return Profile(
        perfkit=__version__,
        traced_s=tuple(notes["traced_s"]),
        untraced_s=tuple(notes["untraced_s"]),
        at_a_time=notes["at_a_time"],
        steps=steps,
        table=ops[:MOST],
        missing=missing,
        **about,
    )
