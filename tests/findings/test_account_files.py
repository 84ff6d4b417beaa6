"""Accounts as files, and files that strangers send."""

import json
from dataclasses import replace

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError
from perfkit.findings.account import Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import parse
from perfkit.findings.store import save, to_json
from tests.findings.spoiled import put
from tests.training.account.accounts import whole
from tests.training.diagnose.diagnosed import diagnosis


def document():
    return json.loads(to_json(whole()))


def test_an_account_keeps_one_file_which_is_a_page_and_no_machine(tmp_path, capsys):
    made = whole()
    path = save(made, tmp_path)
    assert path.name.startswith("account-20250314-")
    assert perfkit.load(path) == made
    # A later state takes the place of an earlier one.
    later = replace(made, samples=2000)
    assert save(later, path=path) == later.path == path
    assert perfkit.load(path).samples == 2000
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert cli.main(["show", str(path)]) == 0
    assert "model.fit(data)" in capsys.readouterr().out
    assert cli.main(["export", str(path)]) == 0
    assert "Read each file once." in path.with_suffix(".html").read_text()
    assert cli.main(["compare", str(path), str(path)]) == 1
    said = capsys.readouterr().err.removesuffix("\n")
    assert said.startswith("perfkit: ")
    assert "\n" not in said
    assert "is not a passport but an account" in said


TIMES = ("wall_s", "once_s", "elsewhere_s", "traced_s", "looking_s", "sampling_s")
LINE, TIP = ("lines", 0), ("tips", 0)


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        *(((name,), -1e-9, "a time is below 0") for name in TIMES),
        (("epochs_s",), [1.0, -3.0], "a time is below 0"),
        (("samples",), "many", "samples"),
        (("lines",), {}, "lines"),
        ((*LINE, "seconds"), {"sleeping": 1.0}, "unknown kind"),
        ((*LINE, "seconds"), {"input": -1.0}, "below 0"),
        *(((*LINE, name), -1.0, "below 0") for name in ("beside_s", "starting_s")),
        ((*LINE, "calls", 0, "seconds"), -1.0, "below 0"),
        ((*LINE, "traces", 0, "seconds"), -1.0, "below 0"),
        ((*LINE, "traces", 0, "count"), 0, "never was"),
        *(((*TIP, "lines"), n, "a line that is not there") for n in ([99], [-1], [])),
        ((*TIP, "share"), 1.5, "than a share"),
        *((("stages", 0, "line"), n, "a line that is not there") for n in (99, -2)),
        (("stages", 0, "out"), -2, "below 0"),
        *((("growth", "line"), n, "a line that is not there") for n in (99, -2)),
        (("growth", "low"), 6e6, "outside its interval"),
        (("growth", "unit"), "year", "growth"),
        (("lines",), document()["lines"][:1] * 2001, "more than"),
        (("stages",), document()["stages"][:1] * 2001, "more than"),
    ],
)
def test_what_no_account_can_hold_is_refused(where, value, said):
    made = document()
    put(made, where, value)
    with pytest.raises(BadFileError) as caught:
        parse(json.dumps(made).encode(), "x.json", Account)
    assert str(caught.value).startswith("x.json is not a valid account: ")
    assert said in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_diagnosis_holds_its_account_which_is_looked_at_as_well():
    made = json.loads(to_json(diagnosis(account=whole())))
    assert parse(json.dumps(made).encode(), "x", Diagnosis).account == whole()
    made["account"]["tips"][0]["lines"] = []
    with pytest.raises(BadFileError, match="not a valid diagnosis: a tip is about"):
        parse(json.dumps(made).encode(), "x", Diagnosis)


def test_numbers_of_lines_around_that_are_none_are_left_out():
    made = document()
    made["text"] = {"train.py#0": {"9" * 5000: "x", "-1": "y", "²": "z", "11": "# It"}}
    assert "# It" in parse(json.dumps(made).encode(), "x", Account)._repr_html_()
