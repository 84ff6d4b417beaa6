import json

import jsonschema
import pytest

import perfkit
from perfkit.errors import BadFileError
from perfkit.findings import schema, store
from perfkit.findings.diagnosis import Diagnosis, Gain, Hint
from tests.diagnosis.diagnosed import SLOW_MAP, cause, diagnosis
from tests.findings.made import failed, finding
from tests.findings.test_report import ATTACK, Page


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


def test_the_file_has_the_keys_that_programs_look_for():
    made = document()
    assert made["kind"] == "diagnosis"
    assert set(made["step"]) == {"median_s", "low", "high"}
    assert {"headline", "much", "sure", "edits", "because"} < set(made["verdict"])
    (first, _) = made["causes"]
    assert set(first["speedup"]) == {"estimate", "low", "high"}
    assert {"cause", "kind", "evidence", "fix", "grade"} < set(first)


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


def test_the_report_has_the_verdict_first_and_then_the_causes():
    lines = repr(diagnosis()).splitlines()
    assert lines[0] == "train.py:make_training: serial-map slows this training most."
    assert lines[1] == "What slows it, by what swapping it brought"
    assert lines[2] == (
        '  1. serial-map: 2.50× (2.38 to 2.62), a defect, "parallel map", measured here'
    )
    assert lines[3] == "     use('parallel map')"


def test_a_cause_that_no_swap_takes_away_is_told_without_one():
    said = repr(diagnosis(causes=(cause("contention", "", 1.6, grade="inferred"),)))
    assert "  1. contention: 1.60× (1.52 to 1.68), a defect, no swap, inferred" in said


def test_the_report_says_what_was_not_claimed_not_tested_and_not_measured():
    said = repr(diagnosis())
    tried = said[said.index("Tried, and not claimed") :]
    assert tried.splitlines()[1].startswith("  XLA: ")
    assert "no-cache: the pipeline is random" in said
    assert "Seen in the code, not measured\n  line 12: ds.map(f)" in said
    assert "unexplained: 10 ms, 31 %, inferred" in said


def test_what_crashed_is_among_what_was_tried():
    found = diagnosis()
    crash = failed("mixed precision", "crashed", "raised TypeError")
    found = diagnosis(trials=(*found.trials, crash))
    assert "mixed precision: not measured, crashed: raised TypeError" in repr(found)


def test_the_page_escapes_everything():
    hostile = diagnosis(
        causes=(cause(ATTACK, ATTACK, 2.0),),
        training=ATTACK,
        verdict=ATTACK,
        because=(ATTACK,),
        next=ATTACK,
        untested={ATTACK: ATTACK},
        hints=(Hint(line=1, code=ATTACK, says=ATTACK),),
    )
    assert "img" not in Page(hostile._repr_html_()).tags
    assert "\x1b" not in repr(hostile)


def test_the_table_has_a_row_for_each_swap_claimed_or_not():
    table = diagnosis().table().set_index("swap")
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
    assert "  without input: " in repr(found)
    assert "  without input: " not in repr(diagnosis())
