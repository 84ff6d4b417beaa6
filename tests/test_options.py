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
        ("lst", "'lst' is no command. Did you mean 'list'?"),
        ("run nappin", "'nappin' is no experiment. Did you mean 'napping'?"),
        ("run nappin --batch 3", "Did you mean 'napping'?"),
        ("run napping --nap 3", "Did you mean '--nap-ms'?"),
        ("run napping --nap_ms=3", "Did you mean '--nap-ms'?"),
        ("run napping now", "'now' is one word too many"),
        ("run napping --batch", "expected one argument"),
        ("lab --port many", "invalid int value"),
    ],
)
def test_bad_usage_is_refused_in_a_sentence(napping, line, sentence):
    with pytest.raises(BadParameterError) as caught:
        options.parse(shlex.split(line))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
