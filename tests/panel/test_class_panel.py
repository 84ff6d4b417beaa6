import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.machines.record import save
from tests.export.pages import POLICY, problems
from tests.hostile.texts import ATTACKS
from tests.machines.passports import passport
from tests.panel.runs import finished, links, state


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
    room = finished(panel)
    assert state(panel) == "A class of 3 machines."
    assert room.chart.alt in panel.view.card.value
    assert all(name in panel.view.card.value for name in ("ada", "bob", "eve"))
    ((name, page),) = links(panel.view.page.value)
    assert name == "class-lab-7.html"
    assert problems(page) == []


def test_your_own_passport_joins_the_class_and_is_marked(folder):
    panel = perfkit.panel("class", folder=folder, you=passport("zoe", 4.0))
    assert len(finished(panel).passports) == 4
    assert "zoe (you are here)" in panel.view.card.value
    with pytest.raises(BadFileError, match="There is no file"):
        perfkit.panel("class", folder=folder, you="mine.json")


def test_a_broken_file_is_counted_and_the_rest_is_shown(panel, folder):
    (folder / "broken.json").write_text("{")
    finished(panel)
    said = "A class of 3 machines. 1 of its files cannot be read: see the last table."
    assert state(panel) == said
    assert "broken.json" in panel.view.card.value


def test_a_folder_that_is_none_gets_a_sentence_and_another_can_be_given(panel, folder):
    panel.view.folder.value = "nowhere"
    with pytest.raises(BadParameterError, match="There is no folder nowhere"):
        panel.result()
    assert "There is no folder nowhere" in state(panel)
    panel.view.folder.value = str(folder)
    assert len(panel.result().passports) == 3


def test_an_empty_folder_says_what_to_do(folder):
    (folder.parent / "empty").mkdir()
    panel = perfkit.panel("class", folder="empty")
    finished(panel)
    assert state(panel) == "A class of 0 machines."
    assert "`perfkit passport" not in panel.view.card.value
    assert "perfkit passport -o NAME.json" in panel.view.card.value
    assert panel.view.page.value == ""


def test_names_that_attack_are_harmless(folder):
    attacks = [one for one in ATTACKS.values() if "/" not in one and one.isascii()]
    for name in attacks[:4]:
        save(passport(), folder / f"{name[:80]}.json")
    panel = perfkit.panel("class", folder=folder)
    finished(panel)
    assert problems(POLICY + panel.view.card.value) == []
