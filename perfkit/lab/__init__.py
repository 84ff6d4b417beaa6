"""JupyterLab as a workshop wants it: the notebook open, and nothing in the way.

``settings/`` holds what JupyterLab itself reads: ``overrides.json`` changes defaults
(no news, no update check, the table of contents in front), ``page_config.json`` leaves
out whole parts (announcements, extension manager, terminals).
"""

from perfkit.lab.launch import open_lab

__all__ = ["open_lab"]
