import json
from dataclasses import replace

import jsonschema
import pytest

import perfkit
from benchmarks import schema
from perfkit.errors import BadFileError
from perfkit.findings import store
from perfkit.findings.diagnosis import Diagnosis, Gain
from perfkit.findings.record import Edit
from tests.diagnosis.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis
from tests.findings.made import failed, finding


def document(**changes):
    return json.loads(store.to_json(diagnosis())) | changes


def read(tmp_path, document):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(document))
    return store.load(path)


def test_what_is_saved_is_loaded_again(tmp_path):
    saved = diagnosis()
    path = store.save(saved, tmp_path)
    again = store.load(path)
    assert isinstance(again, Diagnosis)
    assert again.path == path
    for field in ("causes", "split", "together", "ceiling", "hints", "machine"):
        assert getattr(again, field) == getattr(saved, field)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"step": {"median_s": -1.0, "low": -2.0, "high": 1.0}}, "the step lies"),
        ({"ceiling": {"estimate": 2.0, "low": 3.0, "high": 4.0}}, "the ceiling lies"),
        ({"causes": [{"cause": "x"}]}, "not a sound diagnosis"),
        ({"verdict": "serial-map slows it"}, "verdict"),
        ({"untested": {str(n): "" for n in range(501)}}, "more than 500 untested"),
        (
            {"split": {"input": {"seconds": -1.0, "grade": "inferred", "how": ""}}},
            "a part of a step",
        ),
        ({"noise_floor": 0.0}, "noise floor"),
        ({"schema": 9}, "newer perfkit"),
    ],
)
def test_what_no_run_can_have_found_is_refused(tmp_path, changes, why):
    with pytest.raises(BadFileError, match=why):
        read(tmp_path, document(**changes))


@pytest.mark.parametrize("schema", [1, 2])
def test_an_older_diagnosis_is_read_in_the_words_of_today(tmp_path, schema):
    made = document(schema=schema)
    for one in made["causes"]:
        one["swap"] = one.pop("change")
    made["together"]["swaps"] = made["together"].pop("changes")
    if schema == 1:
        made |= {"verdict": made["verdict"]["headline"]}
    again, saved = read(tmp_path, made), diagnosis()
    assert (again.causes, again.together) == (saved.causes, saved.together)
    assert again.verdict.headline == saved.verdict.headline


def test_where_a_finding_is_needed_a_diagnosis_is_refused(tmp_path):
    path = store.save(diagnosis(), tmp_path)
    with pytest.raises(BadFileError, match="not a finding but a diagnosis"):
        store.load_finding(path)


def test_a_finding_that_speaks_of_a_diagnosis_stays_a_finding(tmp_path):
    path = store.save(finding(guess="diagnosis"), tmp_path)
    assert store.load(path).guess == "diagnosis"


def test_diagnoses_are_listed_among_findings(tmp_path):
    store.save(diagnosis(), tmp_path)
    store.save(finding(), tmp_path)
    listed = perfkit.findings(tmp_path)
    assert set(listed["experiment"]) == {"diagnosis", "data-pipeline"}
    assert diagnosis().verdict.headline in set(listed["headline"])
    assert set(listed["problem"]) == {""}


def test_the_schema_that_ships_fits_what_is_written():
    shipped = json.loads(schema.PATHS[Diagnosis].read_text(encoding="utf-8"))
    assert schema.PATHS[Diagnosis].read_text(encoding="utf-8") == schema.text(Diagnosis)
    jsonschema.validate(document(), shipped)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document(kind="finding"), shipped)


def rows(found, title):
    """The rows of a table of the report, by their first cell."""
    report = found.report
    folded = (table for fold in report.folds for table in fold.tables)
    every = (report.table, *folded)
    return {row[0]: row[1:] for t in every if t.title == title for row in t.rows}


def test_the_report_has_the_verdict_first_and_then_what_to_change():
    edits = (Edit(file="train.py", line=12, old="ds.map(f)", new="ds.map(f, 8)"),)
    found = diagnosis(causes=(replace(SLOW_MAP, edits=edits), LOGGER))
    assert found.verdict.headline in repr(found).splitlines()[:2]
    assert rows(found, "What to change") == {
        "Let the maps work on several elements at a time": (
            "train.py, line 12",
            "2.50× (2.38 to 2.62)",
            "sure",
        ),
        "Leave `CSVLogger` out, or let it do less": (
            "",
            "1.30× (1.23 to 1.37)",
            "sure",
        ),
        "Together: parallel map + without CSVLogger": (
            "",
            "2.93× (2.78 to 3.09)",
            "sure",
        ),
    }


def test_each_cause_is_told_with_its_kind_its_grade_and_what_to_type():
    found = diagnosis(causes=(cause("contention", "", 1.6, grade="inferred"), LOGGER))
    told = rows(found, "What slows it")
    kind, _, grade, _ = told["contention"]
    assert (kind, grade) == ("defect", "inferred")
    assert told["callback: without CSVLogger"][3] == LOGGER.fix


def test_the_report_says_what_was_not_claimed_not_tested_and_not_measured():
    found = diagnosis(unmeasured=("graph",))
    assert list(rows(found, "Tried, and not claimed")) == ["XLA"]
    untested = rows(found, "Not tested")
    assert untested["no-cache"] == ("the pipeline is random",)
    assert "did not measure it" in untested['"graph"'][0]
    hinted = rows(found, "Seen in the code, not measured")
    assert hinted == {"line 12": ("ds.map(f)", "It maps one by one.")}
    split = rows(found, "Where a step of 32 ms goes")
    assert split["unexplained"][:3] == ("10 ms", "31 %", "inferred")
    assert "Not known yet: graph (not measured)." in found.report.besides


def test_a_hint_at_a_line_that_is_to_be_changed_is_not_told_again():
    edits = (Edit(line=12, old="ds.map(f)", new="ds.map(f, 8)"),)
    found = diagnosis(causes=(replace(SLOW_MAP, edits=edits),))
    assert rows(found, "Seen in the code, not measured") == {}


def test_what_crashed_is_among_what_was_tried():
    found = diagnosis()
    crash = failed("mixed precision", "crashed", "raised TypeError")
    found = diagnosis(trials=(*found.trials, crash))
    tried = rows(found, "Tried, and not claimed")["mixed precision"]
    assert tried == ("not measured", "crashed: raised TypeError")


def test_the_table_has_a_row_for_each_change_claimed_or_not():
    table = diagnosis().table().set_index("change")
    assert table.loc["parallel map", "cause"] == "serial-map"
    assert table.loc["parallel map", "fix"] == SLOW_MAP.fix
    assert table.loc["XLA", "cause"] == ""
    assert table.loc["XLA", "ratio"] == pytest.approx(1.0, abs=0.1)


def test_a_page_of_a_diagnosis_holds_its_sections_and_no_script(tmp_path):
    path = store.save(diagnosis(), tmp_path)
    page = perfkit.export(path, tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "://" not in page.replace("http://www.w3.org", "")
    for words in ("What slows it", "Where a step of 32 ms goes", "Not tested"):
        assert words in page


def test_gains_that_are_told_among_the_limits_are_told_once():
    found = diagnosis(ceiling=Gain(estimate=9.0, low=8.0, high=10.0))
    assert "without input" in rows(found, "Tried, and not claimed")
    assert "without input" not in rows(diagnosis(), "Tried, and not claimed")


def test_what_was_diagnosed_in_a_notebook_is_repeated_by_a_call():
    said = diagnosis(training="make_training").report.repeat
    assert "`perfkit.diagnose(make_training, budget=" in said
