import json

import jsonschema
import pytest

from benchmarks import schema
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.store import to_json
from tests.diagnosis.diagnosed import diagnosis
from tests.findings.made import finding

WRITTEN = {Finding: json.loads(to_json(finding()))}
WRITTEN[Diagnosis] = json.loads(to_json(diagnosis()))


def shipped(kind):
    return json.loads(schema.PATHS[kind].read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_schema_that_ships_is_that_of_the_types_and_fits_what_is_written(kind):
    why = "run `python benchmarks/schema.py` after changing a record"
    assert schema.PATHS[kind].read_text(encoding="utf-8") == schema.text(kind), why
    jsonschema.Draft202012Validator.check_schema(shipped(kind))
    jsonschema.validate(WRITTEN[kind], shipped(kind))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Finding, {"kind": "passport"}),
        (Finding, {"trials": [{"variant": "naive"}]}),
        (Diagnosis, {"kind": "finding"}),
    ],
)
def test_the_schema_refuses_what_is_something_else(kind, change):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(WRITTEN[kind] | change, shipped(kind))


@pytest.mark.parametrize("name", ["schema", "trials"])
def test_the_schema_asks_for_what_makes_a_finding(name):
    document = {key: WRITTEN[Finding][key] for key in WRITTEN[Finding].keys() - {name}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, shipped(Finding))
