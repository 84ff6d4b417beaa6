"""What a script holds open stays open while its training goes on."""

import tempfile
import threading
from pathlib import Path

import pytest

from perfkit.diagnosis.script import hand_over, run_until_held


def test_what_is_handed_over_finds_its_files():
    def script():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data").write_text("rows")
            hand_over(Path(folder, "data"))

    assert run_until_held(script).read_text() == "rows"


def test_a_script_that_ends_hands_over_nothing():
    assert run_until_held(lambda: None) is None


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(2)])
def test_what_a_script_raises_is_raised_here(error):
    def script():
        raise error

    with pytest.raises(type(error)) as raised:
        run_until_held(script)
    assert raised.value is error


def test_what_a_script_left_set_for_its_thread_is_set():
    mine = threading.local()

    def script():
        mine.policy = "mixed_bfloat16"
        hand_over(threading.get_ident())

    assert run_until_held(script) == threading.get_ident()
    assert mine.policy == "mixed_bfloat16"
