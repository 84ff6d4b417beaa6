"""Widgets: the panel of an experiment with its live chart, and a simulated pipeline."""

from typing import TYPE_CHECKING

from perfkit.errors import need

if TYPE_CHECKING:
    from perfkit.panel.simulator import PipelineSimulator


def pipeline_simulator() -> "PipelineSimulator":
    """Show an input pipeline with sliders, simulated in the browser.

    As the last line of a cell it draws when the next batches are read, decoded and
    trained on, and the images per second. Move a slider to change them. It is a model
    of a pipeline and measures nothing.

    Raises:
        MissingPartError: anywidget is not installed.
    """
    need("anywidget", "perfkit.pipeline_simulator()", "lab")
    from perfkit.panel.simulator import PipelineSimulator

    return PipelineSimulator()
