"""Every chart of every finding, sound or spoiled, is a picture and safe in a page."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import perfkit
from perfkit.errors import BadParameterError
from perfkit.questions import charts_of, experiments, gallery
from perfkit.questions.replay import BROUGHT
from tests.findings.made import failed, finding, samples, trial
from tests.training.diagnose.diagnosed import diagnosis
from tests.training.profile.profiled import profile

EVERY = [("data-pipeline", kind) for kind in gallery.COMMON]
OWN = [(name, kind) for name in experiments() for kind in charts_of(name)]
ATTACK = '"><script>alert(1)</script>&\x1b\x00\u202e]]>-->$\\frac$'


def check(figure):
    root = ElementTree.fromstring(figure.svg)
    names = [element.tag.partition("}")[2] for element in root.iter()]
    assert root.get("role") == "img"
    assert root.get("aria-label") == figure.alt
    assert figure.alt.endswith(".")
    drawn = {"g", "path", "text", "defs", "clipPath", "rect", "use", "pattern"}
    assert set(names) <= {"svg", "style", *drawn}
    for value in (v for element in root.iter() for v in element.attrib.values()):
        assert "http" not in value
    assert "nan" not in " ".join(re.findall(r' d="([^"]*)', figure.svg))
    return figure


@pytest.mark.parametrize(("experiment", "kind"), [*EVERY, *OWN])
@pytest.mark.parametrize(
    "made",
    [
        finding(),
        finding({"naive": 1000.0}),
        finding({}, rounds=0, extra=(failed("naive", "crashed", "x" * 5000),)),
        finding({f"variant {n}": 100.0 * n for n in range(1, 17)}, against="variant 2"),
        finding(samples=dict.fromkeys(samples(1), ()), noise_floor=None, guess="3x"),
        finding(
            samples=samples(9) | {"core_speed": (None,) * 45, "cpu_trial": (None,) * 45}
        ),
    ],
)
def test_every_chart_of_every_kind_of_run_is_a_picture(experiment, kind, made):
    figure = check(gallery.chart(replace(made, experiment=experiment), kind))
    assert len(figure.svg) < 90_000


RECORDED = sorted({name for name, _ in OWN})
JUNK = (ATTACK, -1, [[10**29, 1e29]], {"resident": 10**29, "losses": [None]})


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: str(junk)[:12])
@pytest.mark.parametrize("name", RECORDED)
def test_whatever_a_recording_notes_its_questions_charts_are_pictures(name, junk):
    found = perfkit.load(BROUGHT / f"{name}.json")
    trials = tuple(
        replace(trial, notes=dict.fromkeys(trial.notes, junk)) for trial in found.trials
    )
    odd = replace(trials[-1], variant=ATTACK)
    asked = dict.fromkeys(found.parameters, junk)
    notes = dict.fromkeys(found.notes, junk)
    for known in (found.parameters, asked):
        spoilt = replace(found, trials=(*trials, odd), notes=notes, parameters=known)
        for kind in charts_of(found.experiment):
            figure = check(gallery.chart(spoilt, kind))
            assert "<script" not in figure.svg


NO_PLANS = [None, 7, [], {}, {"stages": 7}, {"stages": [7, {}]}]


@pytest.mark.parametrize("note", NO_PLANS)
def test_a_plan_that_is_missing_says_so(note):
    made = finding(extra=(trial("naive", 1000, 4, notes={"plan": note}),))
    assert gallery.plan(made).alt.endswith("left a plan of its pipeline.")


@pytest.mark.parametrize(
    ("made", "kind", "said"),
    [
        (finding(), "pie", "not a chart of this; choose from rates, "),
        (diagnosis(), "pie", "is not a chart"),
        (profile(), "rates", "There is no chart of this profile"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(made, kind, said):
    with pytest.raises(BadParameterError, match=said):
        gallery.chart(made, kind)
