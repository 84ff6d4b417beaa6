"""A button with which a file from elsewhere gets into a panel.

The page looks at a file's size before it sends it: a message that is too large would
end its connection to the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from perfkit.panel.documents import LARGEST_UPLOAD

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = Path(__file__).parent / "static"


class Upload(anywidget.AnyWidget):
    """A button that asks for a file and sends it.

    Args:
        heard: Called with the file's name, its size in bytes and its content; that is
            None where the page could not read the file or found it too large.
    """

    _esm = (_HERE / "upload.js").read_text(encoding="utf-8")

    description = traitlets.Unicode("Upload…").tag(sync=True)
    tooltip = traitlets.Unicode().tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)
    largest = traitlets.Int(LARGEST_UPLOAD).tag(sync=True)

    def __init__(
        self, heard: Callable[[str, float, bytes | None], None], **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._told = heard
        self.on_msg(self._hear)

    def _hear(self, _: Any, content: Any, buffers: list[Any]) -> None:
        # A page is not trusted either: anything can be sent in its name.
        told = content if isinstance(content, dict) else {}
        name, size = told.get("name"), told.get("size")
        self._told(
            name if isinstance(name, str) else "",
            float(size) if isinstance(size, int | float) else 0.0,
            bytes(buffers[0]) if buffers else None,
        )
