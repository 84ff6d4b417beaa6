import json
from dataclasses import replace

import pytest

import perfkit
from perfkit.errors import BadFileError
from perfkit.findings import store
from perfkit.findings.record import Finding
from tests.findings.made import finding
from tests.training.diagnose.diagnosed import LOGGER, cause, diagnosis


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"step": {"median_s": -1.0, "low": -2.0, "high": 1.0}}, "the step lies"),
        ({"ceiling": {"estimate": 2.0, "low": 3.0, "high": 4.0}}, "the ceiling lies"),
        ({"causes": [{"cause": "x"}]}, "not a valid diagnosis"),
        ({"untested": {str(n): "" for n in range(501)}}, "more than 500 untested"),
        ({"noise_floor": 0.0}, "noise floor"),
    ],
)
def test_what_no_run_can_have_found_is_refused(tmp_path, changes, why):
    document = json.loads(store.to_json(diagnosis())) | changes
    (tmp_path / "one.json").write_text(json.dumps(document))
    with pytest.raises(BadFileError, match=why):
        store.load(tmp_path / "one.json")


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
    every = (report.table, *(table for fold in report.folds for table in fold.tables))
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
