import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.panel.documents import LARGEST_UPLOAD
from tests.export.pages import POLICY, problems
from tests.findings import made
from tests.hostile.broken import broken, is_large
from tests.hostile.kinds import KINDS
from tests.hostile.texts import ATTACKS, attacked
from tests.machines.pairs import one_core, passport
from tests.panel.runs import finished, links, put, settle, state

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def panel():
    return perfkit.panel("compare", a=passport(label="two"), b=one_core())


def send(panel, side, name, data, **told):
    """What the page sends when a file was chosen."""
    upload = panel.view.uploads[side]
    told = {"name": name, "size": len(data or b""), **told}
    upload._hear(upload, told, [] if data is None else [memoryview(data)])
    return state(panel)


def test_nothing_is_compared_before_compare_is_pressed(panel):
    assert state(panel) == "Ready: pick two machines, then press Compare."
    assert panel.found is None
    assert panel.view.found.value == panel.view.page.value == ""


def test_what_is_shown_is_what_compare_says(panel):
    panel.view.compare.click()
    found = finished(panel)
    said = perfkit.compare(passport(label="two"), one_core())
    assert found.headline == said.headline
    assert "1.7 times as long on B as on A" in found.headline
    assert found.headline in panel.view.found.value
    assert len(said.charts) == 3
    assert panel.view.found.value.count("<svg") == 3


def test_a_machine_alone_is_held_against_a_recorded_one(here):
    put("mine", here)
    panel = perfkit.panel("compare")
    a, b = panel.picked
    assert a.startswith("mine.json")
    assert b.startswith("recorded: epyc-2-cores")


@pytest.mark.parametrize("side", ["a", "b"])
def test_what_is_given_is_picked_and_the_other_is_another(side, here):
    put("mine", here)
    panel = perfkit.panel("compare", **{side: "epyc-2-cores"})
    picked = dict(zip("ab", panel.picked, strict=True))
    assert picked.pop(side).startswith("recorded: epyc-2-cores")
    (other,) = picked.values()
    assert other.startswith("mine.json" if side == "b" else "recorded: ")


def test_a_file_that_is_given_and_lies_here_is_offered_once(here):
    put("theirs", here)
    put("mine", here)
    panel = perfkit.panel("compare", b="theirs.json")
    options = panel.view.pickers["A"].options
    assert sum("theirs" in label for label in options) == 1
    assert panel.picked[0].startswith("mine.json")


def test_two_of_one_name_are_two(here):
    panel = perfkit.panel("compare", a=made.finding(), b=made.finding())
    assert panel.picked == ("finding as given", "finding as given (2)")
    first, second = (panel._sources[label] for label in panel.picked)
    assert first is not second
    for name in ("one", "two"):
        (here / name).mkdir()
        put("theirs", here / name)
    # The one that lies here is another than both.
    put("theirs", here)
    panel = perfkit.panel("compare", a="one/theirs.json", b="two/theirs.json")
    a, b = (panel._sources[label] for label in panel.picked)
    assert (str(a), str(b)) == ("one/theirs.json", "two/theirs.json")
    assert sum("theirs" in label for label in panel.view.pickers["A"].options) == 3


def test_without_a_passport_it_says_how_to_make_one():
    panel = perfkit.panel("compare")
    assert 'perfkit.panel("passport")' in state(panel)
    panel.start()
    found = panel.result()
    assert found.verdict == "slower"
    assert "cores granted: 1 on B, 2 on A" in repr(found)


def test_another_pair_waits_for_compare(here, panel):
    put("third", here)
    panel.result()
    first = panel.view.found.value
    panel.view.refresh.click()
    settle(panel)
    third = next(o for o in panel.view.pickers["A"].options if o.startswith("third"))
    before = panel.picked[0]
    panel.view.pickers["A"].value = third
    assert state(panel) == "Another pair is picked: press Compare."
    assert panel.view.found.value == first
    panel.view.pickers["A"].value = before
    assert state(panel).startswith("Compared")


def test_an_upload_is_picked_and_compared(panel):
    said = send(panel, "B", "theirs.json", KINDS["passport"].sound())
    assert "Compare" in said
    assert panel.picked[1].startswith("uploaded: theirs.json")
    panel.start()
    assert panel.result().b.label


def test_every_broken_upload_gets_a_sentence_and_the_panel_stays_usable(panel):
    sound = KINDS["passport"].sound()
    picked = panel.picked
    for case, make in broken(sound).items():
        if is_large(case):
            continue
        said = send(panel, "A", f"{case}.json", make())
        if panel.picked == picked:
            assert said.endswith((".", "again")), case
            assert "broke off" not in said, case
            assert said.isprintable(), case
        panel.view.pickers["A"].value = picked[0]
        settle(panel)
    panel.start()
    assert panel.result().headline


def test_what_was_said_of_a_broken_file_goes_when_a_sound_one_is_picked(panel):
    assert "is empty" in send(panel, "A", "x.json", b"")
    send(panel, "A", "y.json", KINDS["passport"].sound())
    assert state(panel) == "Ready: pick two machines, then press Compare."
    panel.view.refresh.click()
    settle(panel)
    assert state(panel).endswith("files can be picked.")


def test_a_page_says_when_a_file_is_too_large_to_be_sent(panel):
    said = send(panel, "A", "big.json", None, size=LARGEST_UPLOAD * 100)
    assert said.startswith("big.json is 800 MB large, and a page can send 8 MB")
    # What claims to be a page may send anything.
    assert "is 0 B large" in send(panel, "A", 7, None, size=[])


def test_what_attackers_write_into_a_passport_is_harmless_here(panel):
    sound = KINDS["passport"].sound()
    shown = 0
    for attack in list(ATTACKS.values())[:6]:
        if send(panel, "A", f"{attack}.json", attacked(sound, attack)):
            panel.start()
            settle(panel)
            shown += panel.found is not None
            assert problems(POLICY + panel.view.found.value) == []
            assert panel.picked[0].isprintable()
    assert shown


def test_two_that_do_not_go_together_get_a_sentence(panel):
    send(panel, "B", "run.json", KINDS["finding"].sound())
    panel.start()
    with pytest.raises(BadParameterError, match="give two of a kind"):
        panel.result()
    assert "two of a kind" in state(panel)
    assert not panel.view.compare.disabled
    assert panel.view.page.value == ""


def test_a_file_that_goes_away_is_said(here):
    path = put("gone", here)
    panel = perfkit.panel("compare")
    path.unlink()
    panel.start()
    with pytest.raises(BadFileError, match="There is no file"):
        panel.result()
    panel.view.refresh.click()
    assert state(panel) == "A file that was picked is gone: pick another."
    panel.start()
    assert "Pick a machine A" in state(panel)


def test_its_page_is_in_a_link_and_nothing_is_written(here, panel):
    assert "Nothing is shown yet" in panel._bundle()["text/html"]
    found = panel.result()
    # Without a kernel it shows what was found.
    assert found.headline in panel._bundle()["text/html"]
    assert found.headline in panel._bundle()["text/plain"]
    ((name, page),) = links(panel.view.page.value)
    assert name.startswith("compare-two-and-")
    assert found.headline in page
    assert problems(page) == []
    assert list(here.glob("*.html")) == []


def test_a_guess_is_in_the_report(panel):
    assert perfkit.panel("compare", guess="2x").view.guess.value == "2x"
    panel.result()
    panel.view.guess.value = " B, 2x "
    panel.start()
    settle(panel)
    assert "Your guess: B, 2x" in panel.view.found.value
