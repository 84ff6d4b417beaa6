import json
from dataclasses import asdict, replace

import made

from perfkit.findings import store
from perfkit.machine.record import Load
from tests.doctor import looked


def test_what_is_wrong_is_sorted_by_what_it_costs():
    found = looked.examination(looked.SLOW, looked.WELL, looked.WRONG, looked.HIDDEN)
    assert found.wrong == (looked.WRONG, looked.SLOW)
    assert found.fails
    # A warning is no failure.
    assert not looked.examination(looked.SLOW, looked.HIDDEN).fails
    # The summary counts what is well and names what is unknown.
    found = looked.examination(looked.WELL, looked.WELL, looked.HIDDEN)
    assert found.summary() == (
        "2 checks are ok. Not known here: How the GPU is connected."
    )
    assert looked.examination(looked.WELL).summary() == "1 check is ok."


def test_the_json_has_these_names_and_no_others():
    document = json.loads(looked.examination(looked.SLOW, looked.WELL).to_json())
    assert list(document) == ["schema", "machine", "checks"]
    assert document["schema"] == 2
    assert document["machine"] == json.loads(json.dumps(asdict(looked.FULL)))
    names = ("id", "status", "title", "evidence", "why", "remedy")
    assert document["checks"] == [
        {name: getattr(check, name) for name in names}
        for check in (looked.SLOW, looked.WELL)
    ]
    # A number that json does not have is not known.
    load = Load(others=float("inf"), steal=float("nan"), seconds=0.3)
    machine = replace(looked.BARE, load=load)

    def refuse(constant):
        raise AssertionError(constant)

    text = looked.examination(machine=machine).to_json()
    told = json.loads(text, parse_constant=refuse)["machine"]["load"]
    assert (told["others"], told["steal"], told["seconds"]) == (None, None, 0.3)


def test_the_json_says_what_became_of_the_microbenchmarks(tmp_path):
    found = made.finding(experiment="machine-ladder")

    def told():
        document = json.loads(looked.examination(microbenchmarks=found).to_json())
        return document["microbenchmarks"]

    headline = found.verdict.headline
    assert told() == {"file": None, "stopped": False, "verdict": headline}
    path = store.save(found, tmp_path)
    assert told()["file"] == path.name
