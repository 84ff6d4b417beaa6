"""A function goes to another process as its code, which one Python alone can run."""

import pytest

from perfkit.errors import BadParameterError
from perfkit.measure.host import Environment
from perfkit.race import session
from perfkit.race.entrants import Asked
from perfkit.race.race import open_race

OTHER = "other/bin/python"
ELSEWHERE = Environment("3.99.1", {"tensorflow": "2.99"})


def make_training():
    """Never called here."""


@pytest.fixture(autouse=True)
def another_python(monkeypatch):
    monkeypatch.setattr(session, "environment_of", lambda place: ELSEWHERE)


def test_another_python_is_refused_the_code_of_a_function():
    with pytest.raises(
        BadParameterError, match=r"make_training .* Python 3\.99 cannot"
    ):
        open_race(Asked(trainings=(make_training,), python=(OTHER,)))


def test_another_python_reads_a_file_by_itself(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("def make_training():\n    return 1, 2\n")
    opened = open_race(Asked(trainings=(str(file),), python=(OTHER,)))
    assert opened.finding is None
