import json

import jsonschema
import pytest

from benchmarks import schema
from perfkit.findings.record import Finding
from perfkit.findings.store import save, to_json
from tests.findings.made import finding


@pytest.fixture
def shipped():
    return json.loads(schema.PATHS[Finding].read_text(encoding="utf-8"))


def test_the_schema_that_ships_is_the_schema_of_the_types():
    why = "run `python benchmarks/schema.py` after changing a record"
    assert schema.PATHS[Finding].read_text(encoding="utf-8") == schema.text(), why


def test_the_schema_is_a_schema(shipped):
    jsonschema.Draft202012Validator.check_schema(shipped)


def test_a_finding_fits_the_schema(shipped, tmp_path):
    document = json.loads(save(finding(), tmp_path).read_bytes())
    jsonschema.validate(document, shipped)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "passport"},
        {"trials": [{"variant": "naive"}]},
    ],
)
def test_the_schema_refuses_what_is_no_finding(shipped, change):
    document = json.loads(to_json(finding())) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, shipped)


@pytest.mark.parametrize("name", ["schema", "trials"])
def test_the_schema_asks_for_what_makes_a_finding(shipped, name):
    document = json.loads(to_json(finding()))
    del document[name]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, shipped)
