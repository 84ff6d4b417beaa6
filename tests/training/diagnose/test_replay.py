import pytest

import perfkit
from perfkit import cli
from perfkit.findings import store
from perfkit.panel import panel as panels
from perfkit.training.diagnose.maker import digest
from tests.training.account.accounts import account
from tests.training.diagnose.diagnosed import diagnosis

STAMP = "Recorded on 2025-03-14 09:26, Intel Xeon Platinum 8481C, 2 of 8 cores"


def make_training():
    raise AssertionError("where a recording is shown nothing is run")


@pytest.fixture
def folder(tmp_path):
    """Recordings of ``make_training``, one broken off, and one of other code."""
    made, code = tmp_path / "recordings", digest(make_training)
    fields = {"training": "make_training", "code": code}
    store.save(diagnosis(**fields, guess="9x"), made)
    later = "2026-01-01T00:00:00+00:00"
    store.save(diagnosis(**fields, recorded=later, unfinished=True), made)
    store.save(diagnosis(**fields | {"code": "0" * 64}, recorded=later), made)
    return made


def test_a_recording_is_given_in_place_of_a_diagnosis_and_says_so(folder, tmp_path):
    shown = perfkit.diagnose(make_training, replay=folder, folder=tmp_path)
    assert shown.replayed
    assert shown.recorded == "2025-03-14T09:26:53+01:00"
    assert shown.causes == diagnosis().causes
    assert shown.guess == ""
    assert store.load(shown.path) == shown
    assert shown.path.parent == tmp_path
    store.save(account(training="make_training", code=shown.code), folder)
    for shown_alone in (shown, perfkit.lines(make_training, replay=folder)):
        assert STAMP in shown_alone.verdict._repr_html_()


def test_comments_and_layout_are_no_other_code_and_a_word_is(tmp_path):
    file = tmp_path / "train.py"
    texts = (
        "def make_training():\n    return 1, (2, 3)\n",
        "# Mine.\ndef make_training():\n    return (1,\n            (2, 3))  # two\n",
        "def make_training():\n    return 1, (2, 4)\n",
    )
    found = []
    for text in texts:
        file.write_text(text)
        found.append(digest(perfkit.training.diagnose.maker.maker(file)))
    assert found[0] == found[1] != found[2]


def test_an_environment_variable_turns_every_diagnosis_into_a_replay(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PERFKIT_REPLAY", str(folder))
    panels._panels.clear()
    panel = perfkit.panel(make_training, folder=tmp_path)
    assert panel.result().replayed
    assert STAMP in panel.view.chart.state
    (tmp_path / "train.py").write_text("def make_training():\n    return 1, 2\n")
    assert cli.main(["diagnose", str(tmp_path / "train.py")]) == 1
    assert (
        "holds no diagnosis of this version of train.py:make_training"
        in capsys.readouterr().err
    )
