"""A profile, made of what the training told and of the tables that xprof gave."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadFileError
from perfkit.findings.profile import Profile
from perfkit.profiling import tools, understood
from perfkit.profiling.refused import why_no_kernels

if TYPE_CHECKING:
    from perfkit.machine.record import Machine

# What each table of a profile is read from, and how.
_READERS = {
    "steps": (tools.STEPS, understood.steps),
    "stages": (tools.STEPS, understood.stages),
    "ops": (tools.OPS, understood.ops),
    "kernels": (tools.KERNELS, understood.kernels),
    "memory": (tools.MEMORY, understood.memory),
}
# More than any reader looks at; eager trainings name thousands of operations.
MOST = 500
_NO_STEPS = "xprof found no whole step in the trace; trace more of them."
_NO_MEMORY = (
    "The trace holds nothing of the memory: no allocator told what it did while the "
    "steps were traced."
)


def gathered(
    told: dict[str, Any],
    tables: dict[str, str],
    failed: dict[str, str],
    *,
    here: Machine,
    training: str,
    recorded: str,
    xprof: str,
) -> Profile:
    """Make a profile; what is not there is told in a sentence, and the rest is there.

    Args:
        told: The times, and what TensorFlow said.
        tables: JSON, by tool.
        failed: Why there is none, by tool.
        here: The machine.
        training: Its name.
        recorded: When it began.
        xprof: The version that read the trace.
    """
    read, missing = _read(tables, failed)
    reasons = {
        "steps": _NO_STEPS,
        "kernels": why_no_kernels(_said(told, tables), told["gpus"], here),
        "memory": _NO_MEMORY,
    }
    empty = {name: why for name, why in reasons.items() if not read[name]}
    return Profile(
        training=training,
        recorded=recorded,
        perfkit=importlib.metadata.version("perfkit"),
        machine=here,
        xprof=xprof,
        traced_s=tuple(told["traced_s"]),
        untraced_s=tuple(told["untraced_s"]),
        at_a_time=told["at_a_time"],
        steps=read["steps"],
        table=read["ops"][:MOST],
        more_ops=max(0, len(read["ops"]) - MOST),
        stages=read["stages"][:MOST],
        launched=read["kernels"][:MOST],
        held=read["memory"],
        missing=empty | missing,
        trace_bytes=told["bytes"],
    )


def _read(
    tables: dict[str, str], failed: dict[str, str]
) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    read: dict[str, tuple[Any, ...]] = dict.fromkeys(_READERS, ())
    missing = dict[str, str]()
    for name, (tool, understand) in _READERS.items():
        if tool in failed:
            missing[name] = failed[tool]
            continue
        try:
            read[name] = understand(tables[tool])
        except BadFileError as error:
            missing[name] = str(error)
    return read, missing


def _said(told: dict[str, Any], tables: dict[str, str]) -> str:
    """What the log and the trace itself say of the profiler."""
    warnings = understood.warnings(tables.get(tools.STEPS, ""))
    return "\n".join([str(told["said"]), *warnings])
