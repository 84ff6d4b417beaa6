"""How the tests of hints look at a mistake and at the nearest right code."""

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
