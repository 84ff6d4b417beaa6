"""Let xprof read a trace: each of its tables once, in a process of its own.

xprof is a library in C++ that has been seen to end its process over a trace that it
does not like. One table that it cannot read must not cost the others.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import MissingPartError
from perfkit.measure.processes import in_process
from perfkit.measure.tick import Note
from perfkit.profiling.marks import traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.measure.processes import Ended

STEPS = "input_pipeline_analyzer"
OPS = "framework_op_stats"
KERNELS = "kernel_stats"
MEMORY = "memory_profile"
TOOLS = (STEPS, OPS, KERNELS, MEMORY)
_LONGEST_S = 120.0


def version() -> str:
    """The version of xprof that is installed.

    Raises:
        MissingPartError: There is none.
    """
    if importlib.util.find_spec("xprof") is None:
        raise MissingPartError(
            "A profile is read by xprof, which is not installed in this environment: "
            f'{_installer()} "xprof>=2.22"'
        )
    return importlib.metadata.version("xprof")


def _installer() -> str:
    """What installs into this environment: one that uv made has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return "python -m pip install"
    return f"uv pip install --python {Path(sys.prefix).name}"


def read(
    folder: str,
    process: Callable[[Callable[[], Iterator[Note]], float], Ended] = in_process,
) -> tuple[dict[str, str], dict[str, str]]:
    """Read the tables of the trace in a folder.

    Returns:
        The tables as xprof gives them, JSON, by tool; and in a sentence why there is
        none, by tool.
    """
    found, failed, left = dict[str, str](), dict[str, str](), list(TOOLS)
    while left:
        ended = process(functools.partial(_tables, folder, tuple(left)), _LONGEST_S)
        found |= ended.notes
        left = [tool for tool in left if tool not in found]
        if left:
            why = ended.message.rstrip(".") or "gave nothing"
            failed[left.pop(0)] = f"xprof could not read this part of the trace: {why}."
    return found, failed


def _tables(folder: str, tools: Sequence[str]) -> Iterator[Note]:
    from xprof.convert import raw_to_tool_data

    paths = [str(path) for path in traces(folder)]
    for tool in tools:
        data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {})
        text = data.decode() if isinstance(data, bytes) else data
        yield Note(tool, text or "")
