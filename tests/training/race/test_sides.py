import itertools
import os

import pytest

from perfkit.engine.host import Place
from perfkit.errors import BadParameterError
from perfkit.training.diagnose.change import nothing
from perfkit.training.diagnose.maker import InFile
from perfkit.training.diagnose.script import Script
from perfkit.training.race.sides import Asked, entrants
from tests.training.race.built import FUNCTION, make_training
from tests.training.race.repositories import SCRIPT


def write(path, text=SCRIPT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.fixture
def train(tmp_path):
    return write(tmp_path / "train.py")


def another():
    raise AssertionError("nothing is run while sides are made")


def sides(*trainings, **options):
    made = entrants(Asked(trainings=trainings, **options))
    assert made.close is nothing
    return made.sides


def names(*trainings, **options):
    return [side.name for side in sides(*trainings, **options)]


def typed(*trainings, **options):
    return Asked(trainings=trainings, **options).typed


def refused(*trainings, **options):
    with pytest.raises(BadParameterError) as caught:
        entrants(Asked(trainings=trainings, **options))
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 400
    return said


def test_two_files_are_two_sides_with_the_scripts_arguments_and_fit(tmp_path):
    twice = write(tmp_path / "old.py", f"{SCRIPT}model.fit([1], [2])\n")
    new = write(tmp_path / "new.py", FUNCTION)
    first, other = sides(twice, new, arguments=("--epochs", "3"), fit=2)
    assert [first.name, other.name] == ["old.py", "new.py:make_training"]
    assert isinstance(first.maker, Script)
    assert isinstance(other.maker, InFile)
    assert (first.maker.arguments, first.maker.fit) == (("--epochs", "3"), 2)
    assert first.place == other.place == Place()


def test_sides_of_one_name_are_told_apart_by_their_folders_or_numbers(train, tmp_path):
    files = [write(tmp_path / folder / "train.py") for folder in ("before", "after")]
    assert names(*files) == ["before/train.py", "after/train.py"]
    folder = tmp_path.name
    assert names(train, train) == [f"{folder}/train.py ({i})" for i in (1, 2)]
    # Two cells, each with a function of that name.
    for each in (make_training, make_training), [eval("lambda: 1") for _ in "ab"]:
        assert names(*each) == [f"{each[0].__name__} ({i})" for i in (1, 2)]


def test_variables_make_a_side_each(train):
    here, one, other = sides(
        train, env=("TF_A=1 TF_B='x y'", "TF_ENABLE_ONEDNN_OPTS=0")
    )
    assert here.name == "train.py"
    assert here.place == Place()
    assert one.place.variables == (("TF_A", "1"), ("TF_B", "x y"))
    assert other.name == "TF_ENABLE_ONEDNN_OPTS=0"
    assert other.place.variables == (("TF_ENABLE_ONEDNN_OPTS", "0"),)
    assert here.maker == one.maker == other.maker
    # One may be set to nothing, or hold an equals sign.
    (place,) = (side.place for side in sides(train, env=("XLA_FLAGS= TF_A=b=c",))[1:])
    assert place.variables == (("XLA_FLAGS", ""), ("TF_A", "b=c"))


def test_cores_are_read_as_taskset_reads_them(train, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    found = sides(train, cores=("0-1,3", "2"))
    assert [side.name for side in found] == ["all cores", "cores 0-1,3", "core 2"]
    assert [side.place.cores for side in found] == [(), (0, 1, 3), (2,)]


def test_another_python_keeps_its_links_and_is_known_by_its_environment(
    train, tmp_path, monkeypatch
):
    link = tmp_path / "other-env" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to("/usr/bin/python3")
    here, there = sides(train, python=(str(link),))
    assert [here.name, there.name] == ["this environment", "other-env"]
    assert there.place.python == str(link)
    monkeypatch.chdir(tmp_path)
    (_, there) = sides(train, python=("other-env/bin/python",))
    assert there.place.python == str(link)
    # The folder of a user's own Python has the user's name.
    monkeypatch.setenv("HOME", str(tmp_path / "other-env"))
    assert sides(train, python=(str(link),))[1].name == "python"
    # One that the PATH knows is left to it.
    assert sides(train, python=("python3.12",))[1].place.python == "python3.12"


NO_VARIABLES = ("TF_A", "=1", "TF-A=1", "1A=2", "", "TF_A=1 x", 'TF_A="1')
NO_CORES = ("", "a", "0-", "-1", "0,,1", "3-1", "0-9", "12")
ONCE = "A race has each side once; these are "


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"env": (n,)}, f"--env is {n!r}; give NAME=VALUE") for n in NO_VARIABLES),
        *(({"cores": (given,)}, f"--cores is {given!r}") for given in NO_CORES),
        ({"env": ("TF_A=1",) * 2}, ONCE),
        ({"cores": ("0",) * 2}, ONCE),
        ({"python": ("python3.12",) * 2}, ONCE),
        ({"cores": tuple("01234567")}, "A race has at most 8 sides; these are "),
        ({}, "A race needs two sides: give a second file, or one of --commit, "),
    ],
)
def test_what_makes_no_race_is_refused_in_a_sentence(train, monkeypatch, options, said):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert refused(train, **options).startswith(said)


def test_what_cannot_be_had_here_is_refused(train, tmp_path, monkeypatch):
    missing = str(tmp_path / "nowhere.py")
    assert refused(train, missing).startswith("There is no file nowhere.py")
    assert refused(make_training, commit=("main",)).startswith("--commit needs a file")
    monkeypatch.delattr("os.sched_setaffinity")
    assert refused(train, cores=("0",)).startswith("This system cannot bind a process")


GIVEN = {"commit": ("v1",), "python": ("py",), "env": ("A=1",), "cores": ("0",)}


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.combinations([*GIVEN, "two files"], 2))
)
def test_two_things_at_once_are_refused(train, tmp_path, one, other):
    options = {name: GIVEN[name] for name in (one, other) if name in GIVEN}
    new = [] if other in GIVEN else [write(tmp_path / "new.py")]
    said = refused(train, *new, **options)
    assert said.startswith("A race changes one kind of thing: ")
    assert all(f"--{name}" in said for name in options)
    assert ("two files" in said) is bool(new)


def test_the_command_can_be_typed_without_paths(train, tmp_path):
    assert names(make_training, another) == ["make_training", "another"]
    new = write(tmp_path / "new.py", FUNCTION)
    called = "perfkit.race(make_training, "
    assert typed(make_training, another) == f"{called}another)"
    assert typed(make_training, env=("TF_A=1",)) == f"{called}env='TF_A=1')"
    several = typed(make_training, env=("TF_A=1", "TF_B=2"))
    assert several == f"{called}env=['TF_A=1', 'TF_B=2'])"
    assert typed(train, new) == "perfkit race train.py new.py:make_training"
    python = str(tmp_path / "other-env" / "bin" / "python")
    for said in (
        typed(train, python=(python,)),
        typed(train, env=("LD_LIBRARY_PATH=/home/ada/lib",)),
    ):
        assert not set(said.split()) & {python, train}
        assert str(tmp_path) not in said
        assert "/home" not in said


@pytest.mark.parametrize(
    "given", ["API_KEY=abc123", "TF_TOKEN_x=abc123", "MY=abc123 TF_A=1"]
)
def test_secrets_stay_out_of_names_and_commands(train, given):
    asked = Asked(trainings=(train,), env=(given,))
    shown = asked.typed + "".join(side.name for side in entrants(asked).sides)
    assert "abc123" not in shown
    # The trials have them nonetheless.
    assert "abc123" in dict(entrants(asked).sides[1].place.variables).values()
