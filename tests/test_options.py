import shlex

import pytest

from perfkit import options
from perfkit.errors import BadParameterError


def parameters(line):
    return options.parameters(options.parse(shlex.split(line)))


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("--nap-ms 2.5 --batch 4 --dreams --kind deep",
         {"nap_ms": 2.5, "batch": 4, "dreams": True, "kind": "deep"}),
        # What is not given is left to the experiment, as is what is no number.
        ("", {}),
        ("--no-dreams", {"dreams": False}),
        ("--nap-ms long --batch 2.5", {"nap_ms": "long", "batch": "2.5"}),
    ],
)  # fmt: skip
def test_options_are_made_from_the_parameters(napping, line, given):
    found = parameters(f"run napping {line}")
    assert found == given
    assert {name: type(found[name]) for name in given} == {
        name: type(value) for name, value in given.items()
    }
    if "long" in line:
        with pytest.raises(BadParameterError, match="from 0 to 100 ms"):
            napping(nap_ms=found["nap_ms"])


def test_options_may_stand_before_the_name(napping):
    asked = options.parse(shlex.split("run --budget 5 --batch 4 napping --json -"))
    assert (asked.name, asked.budget, asked.json) == ("napping", 5.0, "-")
    assert options.parameters(asked) == {"batch": 4}
    # Doctor probes only when it is asked to.
    asked = options.parse(["doctor"])
    assert (asked.json, asked.probe, asked.folder) == (False, False, None)
    asked = options.parse(shlex.split("doctor --probe --json --folder data"))
    assert (asked.json, asked.probe, asked.folder) == (True, True, "data")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("lst", "Unknown command: 'lst'. Did you mean 'list'?"),
        ("", "give a command"),
        ("run", "required: NAME"),
        ("run nappin", "Unknown experiment: 'nappin'. Did you mean 'napping'?"),
        ("run nappin --batch 3", "Did you mean 'napping'?"),
        ("run napping --nap 3", "Did you mean '--nap-ms'?"),
        ("run napping --nap_ms=3", "Did you mean '--nap-ms'?"),
        ("run napping now", "Unexpected argument 'now'"),
        ("run napping --batch", "expected one argument"),
        ("show", "required: FILE"),
        ("lab --port many", "invalid int value"),
    ],
)
def test_bad_usage_is_refused_in_a_sentence(napping, line, sentence):
    with pytest.raises(BadParameterError) as caught:
        options.parse(shlex.split(line))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_help_names_range_unit_and_default_of_every_parameter(napping, capsys):
    with pytest.raises(SystemExit) as ended:
        options.parse(["run", "napping", "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "--nap-ms N Length of the nap: 0 to 100 ms; default 5.0" in shown
    assert "--kind WORD Of nap: short, deep; default short" in shown
    assert "--bed FOLDER Where to lie" in shown
    assert "--dreams, --no-dreams" in shown
    assert "130 stopped by Ctrl-C" in shown


@pytest.mark.parametrize("line", ["", "run ", "run napping ", "lab "])
def test_help_fits_sixty_columns(napping, capsys, monkeypatch, line):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        options.parse(shlex.split(f"{line}--help"))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
