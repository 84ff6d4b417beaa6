"""Widgets: the panel of an experiment with its live chart, and a simulated pipeline."""
