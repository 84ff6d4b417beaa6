import pytest

from perfkit.race.race import is_unwritten, race


def unwritten():
    """Make a training, once somebody has written it."""
    return None


def something():
    return 3


def with_work():
    print("made")


@pytest.mark.parametrize(
    ("training", "is_one"),
    [
        (unwritten, True),
        (lambda: None, True),
        (something, False),
        (with_work, False),
        (lambda: [], False),
        ("train.py", False),
        (int, False),
    ],
)
def test_what_does_nothing_is_still_to_be_written(training, is_one):
    assert is_unwritten(training) is is_one


def test_a_race_of_what_is_still_to_be_written_says_so_and_runs_nothing(capsys):
    assert race(unwritten, batch=[64]) is None
    assert capsys.readouterr().out.startswith("Nothing runs yet: unwritten gives back")
