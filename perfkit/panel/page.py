"""What a panel shows as HTML: the finding, its charts, and itself without a kernel."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfkit.findings.record import Finding
    from perfkit.findings.store import Recorded


def charts(finding: Recorded) -> str:
    """The final charts: the first in sight, what explains it folded away below."""
    from perfkit.charts import chart, kinds

    first, *others = kinds(finding).items()
    folded = (
        f"<details><summary>{title}</summary>{chart(finding, kind).in_page()}</details>"
        for kind, title in others
    )
    return chart(finding, first[0]).in_page() + "".join(folded)


def twin(
    question: str, settings: Iterable[tuple[str, str]], finding: Finding | None
) -> str:
    """What stands for a panel without a kernel: its finding, or its settings."""
    if finding is not None:
        from perfkit.charts import chart

        return f"{finding._repr_html_()}{chart(finding).in_page()}"
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(text)}</td></tr>'
        for label, text in settings
    )
    return (
        f"<p><b>{escape(question)}</b></p><p>{no_run('perfkit.run')} "
        f"The panel is set to:</p><table>{rows}</table>"
    )


def no_run(verb: str) -> str:
    """What to do where no panel is seen: on a page, or on a server without widgets.

    Args:
        verb: What does the same without a panel, such as ``"perfkit.run"``.
    """
    return (
        "No run yet. Run this notebook in JupyterLab, Jupyter Notebook or VS Code to "
        f"use the panel; where it does not appear, <code>{verb}(...)</code> does the "
        "same."
    )
