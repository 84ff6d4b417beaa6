"""The controls of a panel, made from the parameters that an experiment declares."""

import dataclasses
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from perfkit.questions.base import Experiment
from perfkit.questions.parameters import (
    Choice,
    Folder,
    Parameter,
    Range,
    parameters_of,
)
from perfkit.training.diagnose.diagnose import AUTO, in_seconds

# A wider range has no place for a thumb that is moved by hand.
_SLIDER_REACH = 100.0
_ROWS = 7
_NONE = "none"
_BUDGET = Range(1, 86_400, unit="s", help="Seconds to spend on measuring")
# In ipywidgets 7, which Colab has, only buttons know the other name.
_TOOLTIP = "tooltip" if hasattr(widgets.Text, "tooltip") else "description_tooltip"
_GUESS = "The fastest variant, or its speed-up over the baseline, such as 3x"


class Controls:
    """What can be set before a run, each a widget.

    Args:
        experiment: Whose parameters there are controls for; their first values. None
            for a run that has none.
        budget: The seconds that are set at first; None for as many as it needs.
        guess: The guess that is set at first.
        auto: Whether the budget may be left to what is measured.

    Attributes:
        by_name: The widget of each parameter, and those of ``budget`` and ``guess``.
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
            p.name: control(p, values[p.name]) for p in self._parameters
        }
        self.by_name["guess"] = widgets.Combobox(
            value=guess,
            options=variants,
            placeholder="a variant, or 3x" if variants else "such as 3x",
            continuous_update=False,
            **labelled("your guess", _GUESS),
        )
        # It stands beside Run, where there is no column of labels.
        self.by_name["guess"].style.description_width = "initial"
        self.by_name["budget"] = (
            _auto_budget(budget) if auto else _number(_BUDGET, float, budget, "budget")
        )

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

    def described(self) -> dict[str, str]:
        """What is set, as a reader reads it: ``{"image side": "224 px"}``."""
        units = {p.name: p.accepts.unit for p in self._parameters if p.accepts}
        is_auto = self.by_name["budget"].value == AUTO
        units["budget"] = "" if is_auto else _BUDGET.unit
        return {
            _name(name): _in_words(_value(widget), units.get(name, ""))
            for name, widget in self.by_name.items()
        }

    def summary(self) -> str:
        """All that is set in one line, without the guess."""
        return ", ".join(
            f"{label} {value}"
            for label, value in self.described().items()
            if value != _NONE and label != "guess"
        )


def boxed(css: str, *parts: Any) -> Any:
    """Widgets side by side, in a box that the style sheet knows by that name."""
    box = widgets.Box(parts)
    box.add_class(css)
    return box


def _auto_budget(budget: float | None) -> Any:
    """The widget of the seconds to spend, which may be left to the training."""
    seconds = AUTO if budget is None else f"{budget:g}"
    tooltip = "Seconds to spend, or auto: as many as it needs, at most 600"
    return _text_control(seconds, **labelled("budget (s)", tooltip))


def _text_control(value: str, **traits: Any) -> Any:
    """The widget of a line of text; it changes once that is typed to its end."""
    return widgets.Text(value=value, continuous_update=False, **traits)


def control(parameter: Parameter, value: Any) -> Any:
    """Make the widget of one parameter; help is shown on hover, the unit in the label.

    A number in a wide range is typed, in a narrow one moved by a slider. One of several
    words is a list to open, several of them a list to mark.
    """
    match parameter.accepts:
        case Range():
            return _number(parameter.accepts, parameter.type, value, parameter.name)
        case Choice(options, many):
            return _choice(parameter, options, value, many=many)
        case Folder():
            labels = labelled(_name(parameter.name), f"{parameter.help} (a path)")
            return _text_control(str(value), placeholder="none", **labels)
    kinds = {bool: widgets.Checkbox, int: widgets.IntText, float: widgets.FloatText}
    kind = kinds.get(parameter.type, widgets.Text)
    return kind(value=value, **labelled(_name(parameter.name), parameter.help))


def _number(accepts: Range, kind: type, value: Any, name: str) -> Any:
    narrow = accepts.low > 0 and accepts.high <= _SLIDER_REACH * accepts.low
    is_integer = kind is int
    ends: dict[str, Any] = {"min": accepts.low, "max": accepts.high}
    if is_integer:
        ends = {end: int(number) for end, number in ends.items()}
    widget_type = {
        (True, True): widgets.IntSlider,
        (True, False): widgets.FloatSlider,
        (False, True): widgets.BoundedIntText,
        (False, False): widgets.BoundedFloatText,
    }[narrow, is_integer]
    unit = f" ({accepts.unit})" if accepts.unit else ""
    limits = f"{accepts.low:g} to {accepts.high:g} {accepts.unit}".rstrip()
    labels = labelled(_name(name) + unit, f"{accepts.help}: {limits}")
    return widget_type(value=value, continuous_update=False, **ends, **labels)


def _choice(
    parameter: Parameter, options: tuple[str, ...], value: str, *, many: bool
) -> Any:
    labels = labelled(_name(parameter.name), parameter.help)
    if not many:
        return widgets.Dropdown(options=options, value=value, **labels)
    labels[_TOOLTIP] += "; Ctrl or Shift marks several"
    rows = min(len(options), _ROWS)
    marked = tuple(value.split(","))
    return widgets.SelectMultiple(options=options, value=marked, rows=rows, **labels)


def _value(widget: Any) -> Any:
    """What is set, as the parameter takes it."""
    value = widget.value
    return ",".join(value) if isinstance(value, tuple) else value


def _name(name: str) -> str:
    return name.replace("_", " ")


def labelled(label: str, tooltip: str) -> dict[str, Any]:
    """What a widget is told of its label and of its width, that of the label within."""
    layout = widgets.Layout(width="27em", max_width="100%")
    style = {"description_width": "11em"}
    return {"description": label, _TOOLTIP: tooltip, "style": style, "layout": layout}


def _in_words(value: Any, unit: str) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}".strip() if text else _NONE
