"""Pictures of what was found: the canvas, and the charts that any finding has."""
