"""The page of faults is what the marks of the tests say."""

from tests.faults import matrix

FOUND = list(matrix.cells())


def test_the_page_is_what_the_marks_say():
    written = matrix.PAGE.read_text(encoding="utf-8")
    assert written == matrix.page(FOUND), "run `python -m tests.faults.matrix`"


def test_every_mark_names_a_cell_that_has_a_meaning():
    known = {(part, fault) for part in matrix.PARTS for fault in matrix.FAULTS}
    assert {(cell.part, cell.fault) for cell in FOUND} <= known
    can_befall = {part: each.split(", ") for part, each in matrix.PARTS.items()}
    assert [c for c in FOUND if c.fault not in can_befall[c.part]] == []
    assert set().union(*can_befall.values()) == set(matrix.FAULTS)
