"""The widget of the simulated pipeline: its sliders live in the browser alone."""

from typing import Any

import anywidget
import traitlets

from perfkit.panel.live_chart import LOST, joined

_STATIC = (
    "<p>Sliders here simulate an input pipeline. To move them, open this notebook in "
    "JupyterLab, Jupyter Notebook or VS Code and run its cells.</p>"
)


class PipelineSimulator(anywidget.AnyWidget):
    """Sliders, a timeline of twelve batches, and images per second.

    Attributes:
        start: The fields of a ``Pipeline`` that it begins with.
        measured: Those that were measured, as ``pipeline``; ``square_ms``, in which one
            core decodes only the squares of a batch, or 0; and the measured ``rates``,
            as text. Empty where there is nothing to use.
    """

    _esm = joined(("simulation.js", "simulator.js"))
    _css = joined(("simulator.css",))

    start = traitlets.Dict().tag(sync=True)
    measured = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        return "<a simulated input pipeline>"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        forms = self._repr_mimebundle_() or ({}, {})
        # A page that is exported has no kernel, no script and so no sliders.
        static: dict[str, Any] = {"text/html": _STATIC, "text/plain": repr(self)}
        display(  # type: ignore[no-untyped-call]
            {**forms[0], **static}, metadata=forms[1], raw=True
        )
        display(LOST, raw=True)  # type: ignore[no-untyped-call]
