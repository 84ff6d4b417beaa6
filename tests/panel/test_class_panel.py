from dataclasses import replace

import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.machine.record import Software
from perfkit.machines.classroom import notebooks
from perfkit.passports.passport import save
from tests.export.pages import POLICY, problems
from tests.findings.made import MACHINE
from tests.hostile.texts import ATTACKS
from tests.machines.passports import passport
from tests.panel.runs import finished, links, settle, state

WITHOUT = replace(MACHINE, software=Software(platform="linux", build="none"))


@pytest.fixture
def folder(here):
    lab = here / "Lab 7"
    lab.mkdir()
    for name, speed in (("ada", 0.5), ("bob", 1.0), ("eve", 2.0)):
        save(passport(name, speed), lab / f"{name}.json")
    return lab


@pytest.fixture
def panel(folder):
    return perfkit.panel("class", folder=folder)


def test_nothing_is_read_before_show_is_pressed(panel):
    assert "press Show" in state(panel)
    assert panel.room is None
    assert panel.view.page.value == ""


def test_it_shows_the_picture_and_every_machine_and_has_a_page(panel):
    panel.view.show.click()
    room = panel.result()
    assert state(panel) == "A class of 3 machines."
    assert room.chart.alt in panel.view.found.value
    assert all(name in panel.view.found.value for name in ("ada", "bob", "eve"))
    assert "Every machine can run every notebook" in panel.view.told.value
    ((name, page),) = links(panel.view.page.value)
    assert name == "class-lab-7.html"
    assert problems(page) == []


def test_you_are_marked_without_reading_the_folder_again(panel, folder):
    panel.result()
    for path in folder.iterdir():
        path.unlink()
    settle(panel)
    assert "you are here" not in panel.view.found.value
    panel.view.you.value = "eve"
    settle(panel)
    assert "eve (you are here)" in panel.view.found.value
    panel.view.you.value = "nobody"
    settle(panel)
    assert "you are here" not in panel.view.found.value


def test_your_own_passport_from_elsewhere_joins_the_class(folder):
    panel = perfkit.panel("class", folder=folder, you=passport("zoe", 4.0))
    room = finished(panel)
    assert len(room.passports) == 4
    assert panel.view.you.value == "zoe"
    assert "zoe (you are here)" in panel.view.found.value


def test_who_cannot_run_which_notebook_is_said_with_the_reason(panel, folder):
    for name in ("old", "older"):
        save(passport(name, machine=WITHOUT), folder / f"{name}.json")
    finished(panel)
    told = panel.view.told.value
    # Only the notebook that looks at the machine needs no TensorFlow.
    said = "can run only 01_gpu_verification: TensorFlow is not installed."
    assert f"old, older {said}" in told
    assert "ada" not in told


def test_a_broken_file_is_counted_and_the_rest_is_shown(panel, folder):
    (folder / "broken.json").write_text("{")
    panel.result()
    said = "A class of 3 machines. 1 file cannot be read: see the last table."
    assert state(panel) == said
    assert "broken.json" in panel.view.found.value


def test_a_folder_that_is_none_gets_a_sentence_and_another_can_be_given(panel, folder):
    panel.view.folder.value = "nowhere"
    with pytest.raises(BadParameterError, match="There is no folder nowhere"):
        panel.result()
    assert "There is no folder nowhere" in state(panel)
    panel.view.folder.value = str(folder)
    assert len(panel.result().passports) == 3


def test_another_folder_waits_for_show(panel, folder):
    panel.result()
    panel.view.folder.value = "."
    assert state(panel) == "Another folder is set: press Show."
    panel.view.folder.value = str(folder)
    assert state(panel) == "A class of 3 machines."


def test_an_empty_folder_says_what_to_do(folder):
    (folder.parent / "empty").mkdir()
    panel = perfkit.panel("class", folder="empty")
    panel.result()
    assert state(panel) == (
        "A class of 0 machines. Give a folder that passports lie in."
    )
    assert panel.view.page.value == ""


def test_names_that_two_machines_share_or_that_attack_are_harmless(folder):
    attacks = [one for one in ATTACKS.values() if "/" not in one and one.isascii()]
    for name in ("nobody", *attacks[:4]):
        save(passport(machine=WITHOUT), folder / f"{name[:80]}.json")
    later = passport("nobody", recorded="2025-03-14T10:26:53+01:00")
    panel = perfkit.panel("class", folder=folder, you=later)
    finished(panel)
    options = panel.view.you.options
    assert len(set(options)) == len(options) == 10
    assert problems(POLICY + panel.view.told.value + panel.view.found.value) == []


def test_your_passport_has_to_be_one(folder):
    with pytest.raises(BadFileError, match="There is no file"):
        perfkit.panel("class", folder=folder, you="mine.json")


def test_every_notebook_of_the_sequence_is_known():
    from tests.notebooks.test_notebooks import NOTEBOOKS as THERE

    assert {path.stem for path in THERE} <= set(notebooks())
