"""How the tests of hints look at a mistake and at the nearest right code."""

import pytest

from perfkit.diagnosis.hints import hints_in

HERE = "# here"


def only_here(mistake, said):
    """One hint, on the line that is marked."""
    (hint,) = hints_in(mistake)
    assert hint.code.endswith(HERE), hint
    assert said in hint.says
    assert hint.grade == "not tested"


def nothing_in(right):
    assert [hint.says for hint in hints_in(right)] == []


def rules(known, head=""):
    """A test of mistakes, each with what is said of it and with right codes."""

    @pytest.mark.parametrize("one", known, ids=range(len(known)))
    def test_a_mistake_is_seen_and_what_is_right_is_not(one):
        mistake, said, *rights = one
        only_here(head + mistake, said)
        for right in rights:
            nothing_in(head + right)

    return test_a_mistake_is_seen_and_what_is_right_is_not
