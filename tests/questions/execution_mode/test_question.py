import re

import pytest

from perfkit.questions.execution_mode import GROUPS, VARIANTS, ExecutionMode
from perfkit.questions.runs import run
from perfkit.questions.shared.loops import NOTE
from tests.questions import races

BATCH = 32


def verdict(steps, *, first_s=0.1, told=None, **more):
    """What is said of a run in which a step of each variant takes so many seconds."""
    found = races.measured(
        {name: BATCH / step for name, step in steps.items()},
        {name: VARIANTS[name].against for name in steps},
        told={name: {NOTE: note} for name, note in (told or {}).items()},
        first=BATCH,
        first_s=first_s,
        **more,
    )
    return ExecutionMode().verdict(found)


@pytest.mark.parametrize(
    ("asked", "variants"), [*GROUPS.items(), ("fit XLA", ("eager loop", "fit XLA"))]
)
def test_a_group_or_a_single_way_brings_what_it_is_held_against(asked, variants):
    experiment = ExecutionMode(variants=asked)
    made = experiment.make_variants()
    assert tuple(made) == variants
    assert experiment.baseline == variants[0]
    assert asked in GROUPS or made[asked].against == variants[0]
    # A remedy stands against what it fixes.
    if "shapes left open" in made:
        assert made["shapes left open"].against == "changing shapes"


MODES = {"eager loop": 0.010, "tf.function": 0.002, "fit XLA": 0.001}
FIRSTS = {"eager loop": 0.11, "tf.function": 0.27, "fit XLA": 2.0}


def test_the_fastest_mode_is_named_with_its_gain_and_when_it_pays_back():
    found = verdict(MODES, firsts=FIRSTS)
    assert (found.winner, found.headline) == ("fit XLA", VARIANTS["fit XLA"].does)
    assert re.search(r"it is ahead after 21\d steps \(2", found.warnings[0])


NUMBERS = {"tf.function": 0.001, "Python number": 0.1, "number as tensor": 0.001}
ANEW = {"steps": 20, "traces": 20}
ONCE = {"steps": 900, "traces": 1}
TOLD = {"Python number": ANEW, "number as tensor": ONCE}


def test_the_most_expensive_retracing_is_named_with_its_remedy_ties_and_traces():
    found = verdict(NUMBERS, told=TOLD)
    assert found.headline == "Pass the step its number as a tensor."
    assert 'With "Python number" this training takes 100 times as long: ' in found.much
    assert found.interval.startswith("9")
    assert (found.winner, found.sure) == ("", "sure")
    assert {fact.label: fact.value for fact in found.facts} == {
        "Traces of Python number": "20 in 20 steps",
        "Traces of number as tensor": "1 in 900 steps",
    }
    steps = NUMBERS | {"made anew": 0.0998, "changing shapes": 0.02}
    found = verdict(steps, told=TOLD)
    assert found.warnings == ('"made anew" may cost as much.',)


def test_a_run_times_a_loop_and_fit(tmp_path):
    found = run("execution-mode", variants="fit", budget=4, folder=tmp_path)
    assert {timing.variant for timing in found.timings} == {"eager loop", "fit"}
    assert found.baseline == "eager loop"
