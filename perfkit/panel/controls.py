"""The controls of a panel, made from the parameters that an experiment declares."""

import dataclasses
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from perfkit.questions.base import (
    Choice,
    Experiment,
    Folder,
    Parameter,
    Range,
    parameters_of,
)
from perfkit.training.diagnose.diagnose import AUTO, in_seconds

# A wider range has no place for a thumb that is moved by hand.
_SLIDER_REACH = 100.0
_ROWS = 7
_BUDGET = Range(1, Experiment.longest_s, unit="s", help="Seconds to spend on measuring")
# In ipywidgets 7, which Colab has, only buttons know the other name.
_TOOLTIP = "tooltip" if hasattr(widgets.Text, "tooltip") else "description_tooltip"
_GUESS = "The fastest variant, or its speed-up over the baseline, such as 3x"


class Controls:
    """What can be set before a run, each a widget that begins with what is given.

    ``by_name`` has that of each parameter of the experiment, if there is one, and those
    of ``budget`` and ``guess``. With ``auto`` the budget may be left to what is
    measured, as it is if it is None.
    """

    def __init__(
        self,
        experiment: Experiment | None,
        budget: float | None,
        guess: str,
        *,
        auto: bool = False,
    ) -> None:
        self._experiment = experiment
        self._parameters = parameters_of(type(experiment)) if experiment else ()
        values = experiment.parameters if experiment else {}
        variants = tuple(experiment.make_variants()) if experiment else ()
        self.by_name: dict[str, Any] = {
            p.name: _control(p, values[p.name]) for p in self._parameters
        }
        self.by_name["guess"] = widgets.Combobox(
            value=guess,
            options=variants,
            placeholder="a variant, or 3x" if variants else "such as 3x",
            continuous_update=False,
            **_labelled("your guess", _GUESS),
        )
        # It stands beside Run, where there is no column of labels.
        self.by_name["guess"].style.description_width = "initial"
        if auto:
            seconds = AUTO if budget is None else f"{budget:g}"
            tooltip = "Seconds to spend, or auto: as many as it needs, at most 600"
            text = _text_control(seconds, **_labelled("budget (s)", tooltip))
            self.by_name["budget"] = text
        else:
            self.by_name["budget"] = _number(_BUDGET, float, budget, "budget")

    @property
    def budget(self) -> float | None:
        """The seconds that are set; None for as many as it needs.

        Raises:
            BadParameterError: What was typed is no number of seconds.
        """
        return in_seconds(self.by_name["budget"].value)

    @property
    def guess(self) -> str:
        """The guess that is set."""
        return str(self.by_name["guess"].value).strip()

    def experiment(self) -> Experiment | None:
        """Make the experiment that is set; None where the run has none.

        Raises:
            BadParameterError: A value that the experiment does not accept.
        """
        if self._experiment is None:
            return None
        values = {p.name: _value(self.by_name[p.name]) for p in self._parameters}
        return dataclasses.replace(self._experiment, **values)

    def on_change(self, call: Callable[[], object]) -> None:
        """Call ``call`` when any of them is changed."""
        for widget in self.by_name.values():
            widget.observe(lambda _: call(), "value")

    def box(self) -> Any:
        """All of them but the guess, in as many columns as there is room for."""
        settings = (w for name, w in self.by_name.items() if name != "guess")
        return boxed("perfkit-controls", *settings)

    def summary(self) -> str:
        """All that is set in one line, without the guess: ``"image side 224 px"``."""
        units = {p.name: p.accepts.unit for p in self._parameters if p.accepts}
        is_auto = self.by_name["budget"].value == AUTO
        units["budget"] = "" if is_auto else _BUDGET.unit
        settings = []
        for name, widget in self.by_name.items():
            value = _value(widget)
            text = f"{value:g}" if isinstance(value, float) else str(value)
            if text and name != "guess":
                settings.append(f"{_name(name)} {text} {units.get(name, '')}".rstrip())
        return ", ".join(settings)


def boxed(css: str, *parts: Any) -> Any:
    """Widgets side by side, in a box that the style sheet knows by that name."""
    box = widgets.Box(parts)
    box.add_class(css)
    return box


def _text_control(value: str, **traits: Any) -> Any:
    """The widget of a line of text; it changes once that is typed to its end."""
    return widgets.Text(value=value, continuous_update=False, **traits)


def _control(parameter: Parameter, value: Any) -> Any:
    """Make the widget of one parameter; help is shown on hover, the unit in the label.

    A number in a wide range is typed, in a narrow one moved by a slider. One of several
    words is a list to open, several of them a list to mark.
    """
    labels = _labelled(_name(parameter.name), parameter.help)
    match parameter.accepts:
        case Range():
            return _number(parameter.accepts, parameter.type, value, parameter.name)
        case Choice(options, many=False):
            return widgets.Dropdown(options=options, value=value, **labels)
        case Choice(options):
            labels[_TOOLTIP] += "; Ctrl or Shift marks several"
            labels |= {"options": options, "rows": min(len(options), _ROWS)}
            return widgets.SelectMultiple(value=tuple(value.split(",")), **labels)
        case Folder():
            labels[_TOOLTIP] += " (a path)"
            return _text_control(str(value), placeholder="none", **labels)
    kinds = {bool: widgets.Checkbox, int: widgets.IntText, float: widgets.FloatText}
    return kinds.get(parameter.type, widgets.Text)(value=value, **labels)


def _number(accepts: Range, kind: type, value: Any, name: str) -> Any:
    narrow = accepts.low > 0 and accepts.high <= _SLIDER_REACH * accepts.low
    decimal, integer = widgets.BoundedFloatText, widgets.BoundedIntText
    if narrow:
        decimal, integer = widgets.FloatSlider, widgets.IntSlider
    low, high = (int(n) if kind is int else n for n in (accepts.low, accepts.high))
    unit = f" ({accepts.unit})" if accepts.unit else ""
    limits = f"{accepts.low:g} to {accepts.high:g} {accepts.unit}".rstrip()
    labels = _labelled(_name(name) + unit, f"{accepts.help}: {limits}")
    ends = {"min": low, "max": high, "continuous_update": False}
    return (integer if kind is int else decimal)(value=value, **ends, **labels)


def _value(widget: Any) -> Any:
    """What is set, as the parameter takes it."""
    value = widget.value
    return ",".join(value) if isinstance(value, tuple) else value


def _name(name: str) -> str:
    return name.replace("_", " ")


def _labelled(label: str, tooltip: str) -> dict[str, Any]:
    """What a widget is told of its label and of its width, that of the label within."""
    layout = widgets.Layout(width="27em", max_width="100%")
    style = {"description_width": "11em"}
    return {"description": label, _TOOLTIP: tooltip, "style": style, "layout": layout}
