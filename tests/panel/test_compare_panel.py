import os

import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.panel.compare_panel import offered
from tests.diagnosis.diagnosed import diagnosis
from tests.export.pages import POLICY, problems
from tests.findings import made
from tests.hostile.kinds import KINDS
from tests.hostile.places import places
from tests.hostile.texts import ATTACKS, attacked
from tests.machines.pairs import one_core, passport
from tests.panel.runs import finished, links, put, settle, state

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def panel():
    return perfkit.panel("compare", a=passport(label="two"), b=one_core())


def picked(panel):
    return [picker.value for picker in panel.view.pickers.values()]


def test_nothing_is_compared_before_compare_is_pressed(panel):
    assert state(panel) == "Ready: pick two machines, then press Compare."
    assert panel.compared is None
    assert panel.view.card.value == panel.view.page.value == ""


def test_what_is_shown_is_what_compare_says(here, panel):
    assert "Nothing is shown yet" in panel._bundle()["text/html"]
    panel.view.compare.click()
    two = finished(panel)
    headline = perfkit.compare(
        passport(label="two"), one_core()
    ).report.verdict.headline
    assert two.report.verdict.headline == headline
    assert headline in panel.view.card.value
    # Without a kernel it shows what was found.
    assert headline in panel._bundle()["text/html"]
    ((name, page),) = links(panel.view.page.value)
    assert name.startswith("compare-two-and-")
    assert headline in page
    assert problems(page) == []
    assert list(here.iterdir()) == []


def test_passports_here_are_offered_the_newest_first_then_the_recorded(here):
    for age, name in enumerate(("new", "old")):
        os.utime(put(name, here), (1000 - age, 1000 - age))
    (here / "package.json").write_text('{"name": "x", "kind": "module"}')
    (here / "cut.json").write_bytes(KINDS["passport"].sound()[:2000])
    os.utime(here / "cut.json", (1, 1))
    (here / "finding.json").write_bytes(KINDS["finding"].sound())
    recorded = [f"recorded: {name}" for name in perfkit.recorded()]
    assert list(offered()) == ["new.json", "old.json", "cut.json", *recorded]
    assert picked(perfkit.panel("compare")) == ["new.json", recorded[0]]


def test_odd_things_in_the_folder_are_passed_over(here):
    # A pipe among them would be waited for until somebody writes into it.
    places(here, KINDS["passport"].sound())
    assert [label for label in offered() if label.startswith("recorded: ")]


@pytest.mark.parametrize("side", ["a", "b"])
def test_what_is_given_is_picked_and_the_other_is_another(side, here):
    put("mine", here)
    panel = perfkit.panel("compare", **{side: "epyc-2-cores"})
    labels = dict(zip("ab", picked(panel), strict=True))
    assert labels.pop(side) == "recorded: epyc-2-cores"
    (other,) = labels.values()
    assert other == ("mine.json" if side == "b" else "recorded: epyc-one-core")
    # A file from elsewhere is offered by its path, a diagnosis as it is.
    (here / "lab").mkdir()
    put("theirs", here / "lab")
    panel = perfkit.panel("compare", **{side: "lab/theirs.json"})
    assert "lab/theirs.json" in picked(panel)
    found = diagnosis()
    assert perfkit.panel("compare", a=found, b=found).result().verdict


def test_without_a_passport_two_recorded_machines_are_compared():
    panel = perfkit.panel("compare")
    panel.start()
    two = panel.result()
    assert two.verdict == "slower"
    assert "cores granted 2 on A, 1 on B" in repr(two)


@pytest.mark.parametrize(
    ("b", "error", "said"),
    [
        ("gone.json", BadFileError, "There is no file"),
        ("cut.json", BadFileError, "cut off"),
        ("run.json", BadFileError, "holds no machine's parts of a step"),
        (made.finding(), BadParameterError, "nothing to compare"),
        (diagnosis(), BadParameterError, "give two of a kind"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence_and_the_panel_stays_usable(
    b, error, said, here
):
    (here / "cut.json").write_bytes(KINDS["passport"].sound()[:2000])
    (here / "run.json").write_bytes(KINDS["finding"].sound())
    panel = perfkit.panel("compare", a=passport(label="two"), b=b)
    with pytest.raises(error, match=said):
        panel.result()
    assert said in state(panel)
    assert not panel.view.compare.disabled
    assert panel.view.page.value == ""
    panel.view.pickers["B"].value = "recorded: epyc-2-cores"
    panel.start()
    assert panel.result().report.verdict.headline


def test_what_attackers_write_into_a_passport_is_harmless_here(here):
    for number, attack in enumerate(list(ATTACKS.values())[:6]):
        path = here / f"{number}.json"
        path.write_bytes(attacked(KINDS["passport"].sound(), attack))
        panel = perfkit.panel("compare", a=path, b=one_core())
        panel.start()
        settle(panel)
        assert problems(POLICY + panel.view.card.value) == []
        assert all(label.isprintable() for label in picked(panel))


def test_a_guess_is_in_the_report_and_nothing_is_written(here, panel):
    assert perfkit.panel("compare", guess="2x").view.guess.value == "2x"
    panel.result()
    panel.view.guess.value = " B, 2x "
    panel.start()
    settle(panel)
    assert "Your guess: B, 2x" in panel.view.card.value
    assert list(here.iterdir()) == []
