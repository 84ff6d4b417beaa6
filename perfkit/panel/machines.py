"""The panels that are about machines and not about one experiment, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError
from perfkit.panel.class_panel import ClassPanel
from perfkit.panel.compare_panel import ComparePanel
from perfkit.panel.passport_panel import PassportPanel

if TYPE_CHECKING:
    from collections.abc import Callable

    MachinesPanel = PassportPanel | ComparePanel | ClassPanel

# Each with what it takes, as the verb of the same name does.
_PANELS: dict[str, tuple[Callable[..., MachinesPanel], tuple[str, ...]]] = {
    "passport": (PassportPanel, ("out", "budget", "label", "with_names")),
    "compare": (ComparePanel, ("a", "b", "folder")),
    "class": (ClassPanel, ("folder", "you")),
}
NAMES = tuple(_PANELS)


def machines_panel(name: str, **given: Any) -> MachinesPanel:
    """Make the panel of this name; what is None or "" was not given.

    Raises:
        BadParameterError: Something was given that it does not take.
    """
    make, takes = _PANELS[name]
    asked = {key: value for key, value in given.items() if value not in (None, "")}
    if not asked.keys() <= {*takes}:
        wrong = ", ".join(sorted(asked.keys() - {*takes}))
        raise BadParameterError(
            f'The panel "{name}" takes {", ".join(takes)}, and not {wrong}.'
        )
    return make(**asked)
