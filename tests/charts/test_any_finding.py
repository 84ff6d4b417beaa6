"""Every chart of every finding, sound or spoiled, is a picture and safe in a page."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, assume, given, settings

from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.reading import parse
from perfkit.findings.record import Finding
from perfkit.questions import charts_of, experiments, gallery
from tests.findings.made import failed, finding, samples, trial
from tests.findings.spoiled import spoiled
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
        finding(rounds=1),
        finding({}, rounds=0),
        finding({}, rounds=0, extra=(failed("naive", "crashed", "x" * 5000),)),
        finding({"naive": 1000.0, "slow": 20.0, "fast": 51000.0}),
        finding({f"variant {n}": 100.0 * n for n in range(1, 17)}, against="variant 2"),
        finding(samples={}),
        finding(samples=dict.fromkeys(samples(1), ())),
        finding(
            samples=samples(9) | {"core_speed": (None,) * 45, "cpu_trial": (None,) * 45}
        ),
        finding(noise_floor=None),
        finding(noise_floor=0.5),
        finding(guess="3x"),
        finding(guess="0 times"),
    ],
)
def test_every_chart_of_every_kind_of_run_is_a_picture(experiment, kind, made):
    figure = check(gallery.chart(replace(made, experiment=experiment), kind))
    assert len(figure.svg) < 90_000


@pytest.mark.parametrize(("experiment", "kind"), [*EVERY, *OWN])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=spoiled(alike=True))
def test_every_finding_that_can_be_read_can_be_drawn(experiment, kind, data):
    try:
        found = parse(data, "x", Finding)
    except BadFileError:
        assume(False)
    check(gallery.chart(replace(found, experiment=experiment), kind))


@pytest.mark.parametrize(("experiment", "kind"), OWN)
def test_a_questions_own_chart_is_offered_for_no_other_and_not_for_nothing(
    experiment, kind
):
    assert kind not in gallery.kinds(finding())
    assert kind not in gallery.kinds(finding({}, rounds=0, experiment=experiment))


OFF = "AUTOTUNE is off here."
NONE = "No variant left a plan of its pipeline."
NO_PLANS = [None, 7, [], {}, {"stages": 7}, {"stages": [7, {}]}]


@pytest.mark.parametrize(
    ("note", "said"), [({"missing": OFF}, OFF), *((note, NONE) for note in NO_PLANS)]
)
def test_a_plan_that_is_missing_says_so(note, said):
    made = finding(extra=(trial("naive", 1000, 4, notes={"plan": note}),))
    assert gallery.plan(made).alt.endswith(said)


def test_a_failed_trial_of_a_timed_variant_is_told():
    crash = replace(failed("naive", "crashed", "x", 4), started_s=5.0, wall_s=1.0)
    assert "1 of 4 crashed" in gallery.rates(finding(extra=(crash,))).alt


@pytest.mark.parametrize(
    ("made", "kind", "said"),
    [
        (finding(), "pie", "not a chart of this; choose from rates, "),
        (diagnosis(), "pie", "is not a chart"),
        (profile(), "rates", "'rates' is not a chart of this"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(made, kind, said):
    with pytest.raises(BadParameterError, match=said):
        gallery.chart(made, kind)
