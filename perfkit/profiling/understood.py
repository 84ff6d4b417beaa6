"""xprof's tables, as JSON, made into records.

Its tables have changed from version to version. A table is found by a column that it
must have, and what cannot be understood is told in a sentence, not guessed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from perfkit.errors import BadFileError
from perfkit.findings.profile import Held, Kernel, Op, ProfiledStep, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    Rows = list[dict[str, Any]]

Made = TypeVar("Made")

_IDLE = "IDLE"
_PARTS = {
    "deviceComputeTimeMs": "device compute",
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


def steps(text: str) -> tuple[ProfiledStep, ...]:
    """The steps, taken apart.

    Raises:
        BadFileError: The table is not as it should be.
    """
    return _understood(text, lambda made: tuple(map(_step, _rows(made, "stepnum"))))


def stages(text: str) -> tuple[Stage, ...]:
    """The stages of the input, the dearest first.

    Raises:
        BadFileError: The table is not as it should be.
    """
    found = _understood(text, lambda made: tuple(map(_stage, _rows(made, "opName"))))
    return tuple(sorted(found, key=lambda stage: -stage.self_s))


def warnings(text: str) -> tuple[str, ...]:
    """What the profiler itself found wrong; empty where nobody says."""
    try:
        rows = _rows(json.loads(text), "severity")
        return tuple(str(row["message"]) for row in rows)
    except _WRONG:
        return ()


def ops(text: str) -> tuple[Op, ...]:
    """All operations, the dearest first; idle time is none.

    Raises:
        BadFileError: The table is not as it should be.
    """
    found = _understood(text, lambda made: list(map(_op, _rows(made, "operation"))))
    working = (op for op in found if op.type != _IDLE)
    return tuple(sorted(working, key=lambda op: -op.self_s))


def kernels(text: str) -> tuple[Kernel, ...]:
    """The kernels of GPUs, the dearest first.

    Raises:
        BadFileError: The table is not as it should be.
    """
    found = _understood(
        text, lambda made: tuple(map(_kernel, _rows(made, "kernel_name")))
    )
    return tuple(sorted(found, key=lambda kernel: -kernel.total_s))


def memory(text: str) -> tuple[Held, ...]:
    """What each allocator held.

    Raises:
        BadFileError: It is not as it should be.
    """
    return _understood(
        text,
        lambda made: tuple(
            _held(name, one) for name, one in made["memoryProfilePerAllocator"].items()
        ),
    )


def _understood(text: str, understand: Callable[[Any], Made]) -> Made:
    try:
        return understand(json.loads(text))
    except _WRONG as error:
        raise BadFileError(
            "xprof gave a table that this perfkit cannot read "
            f"({type(error).__name__}: {str(error)[:80]})."
        ) from None


def _rows(made: Any, column: str) -> Rows:
    """The rows of the last table that has a column, by the ids of its columns."""
    for table in reversed(made if isinstance(made, list) else [made]):
        ids = [one["id"] for one in table.get("cols", ())]
        if column in ids:
            return [_by_id(ids, row["c"]) for row in table["rows"]]
    raise LookupError(f"there is no column {column}")


def _by_id(ids: list[str], cells: list[Any]) -> dict[str, Any]:
    values = ((cell or {}).get("v") for cell in cells)
    return dict(zip(ids, values, strict=False))


def _step(row: dict[str, Any]) -> ProfiledStep:
    parts = {
        _PARTS.get(name, name.removesuffix(_TIME)): float(value) / 1e3
        for name, value in row.items()
        if name.endswith(_TIME) and name != _WHOLE
    }
    return ProfiledStep(
        name=str(row["stepnum"]), seconds=float(row[_WHOLE]) / 1e3, parts=parts
    )


def _stage(row: dict[str, Any]) -> Stage:
    return Stage(
        name=str(row["opName"]),
        category=str(row["category"]),
        count=int(row["count"]),
        total_s=float(row["timeInMs"]) / 1e3,
        self_s=float(row["selfTimeInMs"]) / 1e3,
    )


def _op(row: dict[str, Any]) -> Op:
    return Op(
        name=str(row["operation"]),
        type=str(row["type"]),
        device="host" if str(row["host_or_device"]).lower() == "host" else "device",
        count=int(row["occurrences"]),
        total_s=float(row["total_time"]) / 1e6,
        self_s=float(row["total_self_time"]) / 1e6,
    )


def _kernel(row: dict[str, Any]) -> Kernel:
    return Kernel(
        name=str(row["kernel_name"]),
        op=str(row["op_name"]),
        count=int(row["occurrences"]),
        total_s=float(row["total_duration_us"]) / 1e6,
        least_s=float(row["min_duration_us"]) / 1e6,
        most_s=float(row["max_duration_us"]) / 1e6,
        occupancy=float(row["occupancy_pct"]) / 100,
        tensor_cores=bool(row["is_kernel_using_tensor_core"]),
        could_use_them=bool(row["is_op_tensor_core_eligible"]),
    )


def _held(name: str, one: dict[str, Any]) -> Held:
    summary = one["profileSummary"]
    peak = summary["peakStats"]
    return Held(
        allocator=name,
        capacity=int(summary["memoryCapacity"]),
        peak=int(peak["peakBytesInUse"]),
        peak_ever=int(summary["peakBytesUsageLifetime"]),
        fragmentation=float(peak["fragmentation"]),
    )
