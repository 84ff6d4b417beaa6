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
