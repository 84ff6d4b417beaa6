import json
from dataclasses import replace

import pytest

import perfkit
from perfkit.errors import BadFileError
from perfkit.findings import store
from perfkit.findings.diagnosis import Gain
from perfkit.findings.record import Edit, Finding
from tests.findings.made import failed, finding
from tests.training.diagnose.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"step": {"median_s": -1.0, "low": -2.0, "high": 1.0}}, "the step lies"),
        ({"ceiling": {"estimate": 2.0, "low": 3.0, "high": 4.0}}, "the ceiling lies"),
        ({"causes": [{"cause": "x"}]}, "not a valid diagnosis"),
        ({"untested": {str(n): "" for n in range(501)}}, "more than 500 untested"),
        (
            {"split": {"input": {"seconds": -1.0, "grade": "inferred", "how": ""}}},
            "a part of a step",
        ),
        ({"noise_floor": 0.0}, "noise floor"),
    ],
)
def test_what_no_run_can_have_found_is_refused(tmp_path, changes, why):
    document = json.loads(store.to_json(diagnosis())) | changes
    (tmp_path / "one.json").write_text(json.dumps(document))
    with pytest.raises(BadFileError, match=why):
        store.load(tmp_path / "one.json")


def test_what_a_file_from_before_does_not_say_of_its_causes_is_filled_in(tmp_path):
    document = json.loads(store.to_json(diagnosis(causes=(SLOW_MAP, LOGGER))))
    for entry in document["causes"]:
        for name in ("do", "mind", "subject", "group", "ceiling", "at_least"):
            del entry[name]
    document["causes"][1] |= {"caution": "It steers.", "change": "without observers"}
    (tmp_path / "early.json").write_text(json.dumps(document))
    slow_map, watching = store.load(tmp_path / "early.json").causes
    assert slow_map == SLOW_MAP
    assert (watching.mind, watching.ceiling) == ("It steers.", True)
    assert watching.do == "Do less in callbacks, metrics and validation"


def test_diagnoses_lie_among_findings_and_are_none(tmp_path):
    path = store.save(diagnosis(), tmp_path)
    with pytest.raises(BadFileError, match="not a finding but a diagnosis"):
        store.read(path, Finding)
    path = store.save(finding(guess="diagnosis"), tmp_path)
    assert store.load(path).guess == "diagnosis"
    listed = perfkit.findings(tmp_path)
    assert set(listed["experiment"]) == {"diagnosis", "data-pipeline"}
    assert diagnosis().verdict.headline in set(listed["headline"])
    assert set(listed["problem"]) == {""}


def rows(found, title):
    """The rows of a table of the report, by their first cell."""
    report = found.report
    folded = (table for fold in report.folds for table in fold.tables)
    every = (report.table, *folded)
    return {row[0]: row[1:] for t in every if t.title == title for row in t.rows}


def test_of_several_ways_to_mend_one_cause_the_best_is_told():
    seldom = cause("validation", "validation every 5 epochs", 1.4)
    never = cause("validation", "without validation", 1.5)
    writer = cause("callback", "without Writer", 1.2)
    found = diagnosis(causes=(never, seldom, LOGGER, writer))
    assert found.best == (never, LOGGER, writer)
    told = rows(found, "Changes")
    watched = [what for what in told if "on validation" in what]
    assert watched == ["Spend less time on validation"]
    # What all of it brings is told where that is more than the best alone.
    best = cause("serial-map", "parallel map", found.together.speedup.estimate)
    less = rows(replace(found, causes=(best, LOGGER)), "Changes")
    assert [what.startswith("Together") for what in (*told, *less)].count(True) == 1


def test_the_report_has_the_verdict_first_and_then_what_to_change():
    edits = (Edit(file="train.py", line=12, old="ds.map(f)", new="ds.map(f, 8)"),)
    found = diagnosis(causes=(replace(SLOW_MAP, edits=edits), LOGGER))
    assert found.verdict.headline in repr(found).splitlines()[:2]
    assert "What slows train.py:make_training?" in repr(found)
    told = {what: " | ".join(row) for what, row in rows(found, "Changes").items()}
    assert told == {
        "Run the maps in parallel": ("train.py, line 12 | 2.50× (2.38 to 2.62) | sure"),
        "Leave `CSVLogger` out, or let it do less": " | 1.30× (1.23 to 1.37) | sure",
        "Together: parallel map + without CSVLogger": " | 2.93× (2.78 to 3.08) | sure",
    }


def test_each_cause_and_what_was_not_claimed_tested_or_measured_is_told():
    found = diagnosis(causes=(cause("contention", "", 1.6, grade="inferred"), LOGGER))
    told = rows(found, "What slows it")
    kind, _, grade, _ = told["contention"]
    assert (kind, grade) == ("defect", "inferred")
    assert told["callback: without CSVLogger"][3] == LOGGER.fix
    found = diagnosis(unmeasured=("graph",))
    assert list(rows(found, "Tried, and not claimed")) == ["XLA"]
    untested = rows(found, "Not tested")
    assert untested["no-cache"] == ("the pipeline is random",)
    assert "did not measure it" in untested['"graph"'][0]
    split = rows(found, "Where a step of 32 ms goes")
    assert split["unexplained"][:3] == ("10 ms", "31 %", "inferred")
    assert "Not known yet: graph (not measured)." in found.report.besides


def test_what_was_tried_or_seen_is_told_once():
    found = diagnosis()
    crash = failed("mixed precision", "crashed", "raised TypeError")
    found = diagnosis(trials=(*found.trials, crash))
    tried = rows(found, "Tried, and not claimed")["mixed precision"]
    assert tried == ("not measured", "crashed: raised TypeError")
    found = diagnosis(ceiling=Gain(estimate=9.0, low=8.0, high=10.0))
    assert "without input" in rows(found, "Tried, and not claimed")
    assert "without input" not in rows(diagnosis(), "Tried, and not claimed")
    # The table has a row for each change, claimed or not.
    table = diagnosis().table().set_index("change")
    assert table.loc["parallel map", "cause"] == "serial-map"
    assert table.loc["parallel map", "fix"] == SLOW_MAP.fix
    assert table.loc["XLA", "cause"] == ""
    assert table.loc["XLA", "ratio"] == pytest.approx(1.0, abs=0.1)


# Which fit of a script was taken is in what to type, and no argument of its own is.
ASKED = {"asked": {"fit": 2, "arguments": True}}


@pytest.mark.parametrize(
    ("training", "facts", "command"),
    [
        ("train.py", {}, "`perfkit diagnose train.py --budget=120 --seed=3`"),
        ("a.py:make", {}, "`perfkit diagnose a.py:make --budget=120 --seed=3`"),
        ("a.ipynb", {}, "`perfkit diagnose a.ipynb --budget=120 --seed=3`"),
        ("make", {}, "`perfkit.diagnose(make, budget=120, seed=3)`"),
        ("a.py", ASKED, "`perfkit diagnose a.py --fit=2 --budget=120 --seed=3`, its"),
    ],
)
def test_what_to_type_to_repeat_it_is_said(training, facts, command):
    found = diagnosis(training=training, seed=3, facts=facts)
    assert command in found.report.repeat
