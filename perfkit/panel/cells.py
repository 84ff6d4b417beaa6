"""Which panels did the running cell make when it ran before?

They are gone from the page once it runs again, so nobody could stop them any more.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Stoppable(Protocol):
    """What may be running when its cell is run again."""

    def stop(self) -> None:
        """End what is running."""

    def wait(self) -> None:
        """Return once nothing is running."""


# By cell: the execution that made it, and the panel.
_made: dict[str, list[tuple[str, Stoppable]]] = {}


def take_over(panel: Stoppable, otherwise: str) -> None:
    """Stop what earlier runs of this cell made, and remember what this one makes.

    Args:
        panel: What this cell makes.
        otherwise: What stands for the cell where the front end does not tell it.
    """
    cell, execution = running_cell()
    known = _made.get(cell or otherwise, [])
    old = [made for by, made in known if by != execution or not execution]
    for made in old:
        made.stop()
    for made in old:
        made.wait()
    kept = [(by, made) for by, made in known if made not in old]
    _made[cell or otherwise] = [*kept, (execution, panel)]


def running_cell() -> tuple[str, str]:
    """The id of the running cell and that of its execution; "" where unknown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    request: dict[str, Any] = getattr(shell, "get_parent", dict)()
    cell = request.get("metadata", {}).get("cellId", "")
    return str(cell), str(request.get("header", {}).get("msg_id", ""))
