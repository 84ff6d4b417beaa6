from dataclasses import dataclass
from typing import Annotated, ClassVar

import ipywidgets as widgets
import pytest

from perfkit.panel.controls import Controls
from perfkit.questions import experiments
from perfkit.questions.base import Choice, Folder, Range
from tests.questions.toy import Loops


@dataclass(frozen=True, kw_only=True)
class Everything(Loops):
    """Does every kind of parameter have a control?"""

    name: ClassVar[str] = "everything"

    side: Annotated[int, Range(16, 1024, unit="px", help="Side of it")] = 224
    which: Annotated[str, Choice(("a", "b", "c"), many=True, help="Of all")] = "a,c"
    where: Annotated[str, Folder(help="Where it lies")] = ""
    loud: bool = True


@pytest.fixture
def controls():
    return Controls(Everything(), budget=30, guess="double")


def test_each_kind_of_parameter_has_its_kind_of_control(controls):
    kinds = {name: type(widget) for name, widget in controls.by_name.items()}
    assert kinds["side"] is widgets.IntSlider
    # So wide a range has no slider.
    assert kinds["size"] is widgets.BoundedIntText
    assert kinds["which"] is widgets.SelectMultiple
    assert kinds["loud"] is widgets.Checkbox


def test_what_is_set_makes_the_experiment(controls, tmp_path):
    set_to = {"side": 32, "where": str(tmp_path), "loud": False}
    for name, value in (set_to | {"which": ("b", "c")}).items():
        controls.by_name[name].value = value
    assert controls.experiment() == Everything(**set_to, which="b,c")


def test_each_says_its_unit_its_limits_and_what_may_be_guessed(controls):
    side = controls.by_name["side"]
    assert (side.description, side.tooltip) == (
        "side (px)",
        "Side of it: 16 to 1024 px",
    )
    assert (side.min, side.max) == (16, 1024)
    assert controls.by_name["guess"].options == ("short", "double")
    # They can be read without widgets.
    said = "size 20000, side 224 px, which a,c, loud True, budget 30 s"
    assert controls.summary() == said


@pytest.mark.parametrize("name", list(experiments()))
def test_every_experiment_can_be_controlled(name):
    chosen = experiments()[name]()
    controls = Controls(chosen, budget=60, guess="")
    assert controls.experiment() == chosen
    assert all(widget.tooltip for widget in controls.by_name.values())
