"""Any bytes are read, or refused in one line: no reader raises anything else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.mutations import bitten
from tests.hostile.readers import READERS

# Each of them writes and reads files.
_EXAMPLES = 40


@st.composite
def spoiled(draw, sound):
    """A sound file that was changed here and there, or bytes of no kind."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=200))
    return bitten(draw(st.sampled_from(sound)), draw(st.randoms(use_true_random=False)))


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused_in_one_line(name, tmp_path_factory):
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(spoiled(READERS[name].sound()))
    def read(data):
        READERS[name](data, tmp_path_factory.mktemp("read"))

    read()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("script", b"# coding: rot13\nimport keras", "is not a text encoding"),
        # Some Pythons can read it.
        ("script", b"import keras\nkeras" + b".a" * 5000, ""),
        ("script", b"import keras\n" + b"(" * 5000, "nested"),
        ("script", b"import keras\x00", "null bytes"),
        ("script in a notebook", b"[]", "it is not a notebook"),
        (
            "script in a notebook",
            b'{"cells": [{"cell_type": "code"}]}',
            "not a notebook",
        ),
        ("script in a notebook", b"[" * 99_999, "recursion"),
    ],
)
def test_what_once_broke_a_reader_is_refused(name, data, said, tmp_path):
    assert said in READERS[name](data, tmp_path)
