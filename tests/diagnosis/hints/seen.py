"""How the tests of hints look at a mistake and at the nearest right code."""

import re

import pytest

from perfkit.diagnosis.hints import hints_in

HERE = " # here"
GOES, COMES = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"


def versions(difference):
    """The code before and after it: of [-goes-]{+comes+} first "goes", then "comes"."""
    for kept, left in ((GOES, COMES), (COMES, GOES)):
        code = re.sub(left, "", difference, flags=re.DOTALL)
        yield re.sub(kept, r"\1", code, flags=re.DOTALL)


def only_here(mistake, said):
    (hint,) = hints_in(mistake)
    assert hint.code.endswith(HERE), hint
    assert said in hint.says
    assert hint.grade == "not tested"


def nothing_in(right):
    assert [hint.says for hint in hints_in(right)] == []


def marked(difference):
    """The same with its first line that changes marked, where none is."""
    if HERE in difference:
        return difference
    lines = difference.split("\n")
    first = next(n for n, line in enumerate(lines) if "[-" in line or "{+" in line)
    lines[first] += HERE
    return "\n".join(lines)


def rules(mistakes, rights, head=""):
    """Tests of mistakes, by what is said of them, and of codes that are right.

    A mistake is written as its difference to what is right, or has its line marked.
    """
    cases = [
        (said, one)
        for said, each in mistakes.items()
        for one in ([each] if isinstance(each, str) else each)
    ]

    @pytest.mark.parametrize(
        ("said", "difference"), cases, ids=[said for said, _ in cases]
    )
    def test_a_mistake(said, difference):
        mistake, right = versions(marked(difference))
        only_here(head + mistake, said)
        if right != mistake:
            nothing_in(head + right)

    @pytest.mark.parametrize("right", rights, ids=lambda code: code.splitlines()[-1])
    def test_what_is_right(right):
        nothing_in(head + right)

    return test_a_mistake, test_what_is_right
