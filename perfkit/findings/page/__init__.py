"""Findings, or a notebook, as one HTML file that can be sent to anybody.

Open ``export.py`` first: it lays reports out. ``notebook`` converts a notebook, and
``clean`` removes whatever its outputs hold that could act.
"""
