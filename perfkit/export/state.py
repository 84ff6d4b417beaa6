"""Is what a notebook shows up to date? As far as its file can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbformat import NotebookNode


def notices(notebook: NotebookNode) -> Iterator[str]:
    """What a reader has to know before they trust the outputs, a sentence each."""
    code = [cell for cell in notebook.cells if _is_work(cell)]
    run = [cell for cell in code if was_run(cell)]
    if not code:
        return
    if not run:
        yield (
            "This notebook was never run, or its outputs were cleared: the page shows "
            "its text and its code, and no result."
        )
        return
    if len(run) < len(code):
        missing = len(code) - len(run)
        yield (
            f"{missing} of its {len(code)} code cells {_were(missing)} not run: what "
            "they would show is missing."
        )
    counts = [cell.execution_count for cell in run if cell.execution_count]
    if counts != sorted(counts):
        yield (
            "Its cells were not run from top to bottom: a result may come from code "
            "that has changed since."
        )
    failed = sum(any(o.output_type == "error" for o in cell.outputs) for cell in run)
    if failed:
        yield f"{failed} of its code cells ended in an error."


def was_run(cell: NotebookNode) -> bool:
    """Whether a code cell has been run since its outputs were last cleared."""
    return cell.execution_count is not None or bool(cell.outputs)


def _is_work(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.source.strip())


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
