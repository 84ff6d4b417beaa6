"""A broken or hostile file is one sentence, or is shown without any harm."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from perfkit import cli
from perfkit.errors import BadFileError
from perfkit.findings import store
from perfkit.findings.record import Shown
from tests.findings.made import finding
from tests.findings.spoiled import get, put
from tests.findings.spoiled import places as paths
from tests.hostile.broken import broken, is_large, write_small
from tests.hostile.kinds import KINDS
from tests.hostile.places import places
from tests.hostile.texts import ATTACKS, attacked

BROKEN = list(broken(b""))
# Charts take their time: several attacks share a document, each in its turn first.
_STARTS = range(0, len(ATTACKS), 9)
_JUNK = (None, [], "x", -1, 0, 1e29, [[]])


def is_one_sentence(text):
    return text.isprintable() and text.endswith(".")


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder full of what is no finding, and the paths into and out of it."""
    folder = tmp_path_factory.mktemp("odd")
    # One of them may not be read; whoever is root reads it all the same.
    return folder, places(folder, b"{}")


@pytest.mark.parametrize(
    ("kind", "case"),
    [(k, c) for k in KINDS for c in BROKEN if k == "finding" or not is_large(c)],
)
def test_what_is_broken_is_refused_in_one_sentence(kind, case):
    data = broken(KINDS[kind].sound)[case]()
    with pytest.raises(BadFileError) as caught:
        KINDS[kind].read(data, "x.json")
    assert is_one_sentence(str(caught.value))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", _STARTS)
def test_a_document_full_of_attacks_is_shown_and_does_no_harm(kind, start):
    # A passport refuses long texts.
    longest = 200 if kind == "passport" else None
    attacks = [text[:longest] for text in ATTACKS.values()]
    KINDS[kind].show(attacked(KINDS[kind].sound, *attacks[start:], *attacks[:start]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("junk", _JUNK, ids=repr)
def test_junk_in_any_place_is_refused_or_can_be_shown(kind, junk):
    made = json.loads(KINDS[kind].sound)
    # Every place, of long lists the first two items only.
    for path in paths(made):
        if not path or any(isinstance(key, int) and key > 1 for key in path):
            continue
        before = get(made, path)
        put(made, path, junk)
        data = msgspec.json.encode(made)
        put(made, path, before)
        try:
            found = KINDS[kind].read(data, "x.json")
            # Without its chart: that of each place would take minutes.
            shown = Shown._repr_html_(found) and repr(found)
            said = "It is shown." if shown else ""
        except BadFileError as error:
            said = str(error)
        assert is_one_sentence(said), path


def test_whatever_lies_at_a_path_is_a_finding_or_one_sentence(odd):
    for what, path in odd[1].items():
        with pytest.raises(BadFileError) as caught:
            store.load(path)
        assert is_one_sentence(str(caught.value)), what
    # The corpus is large.
    assert len(BROKEN) + len(ATTACKS) + len(odd[1]) >= 100


@pytest.mark.parametrize("command", ["show", "export"])
def test_the_command_line_says_it_in_one_line(command, odd, capsys):
    for what, path in odd[1].items():
        if "\0" in str(path):
            # No command line can hold it.
            continue
        more = ["-o", str(odd[0] / "x.html")] if command == "export" else []
        assert cli.main([command, *more, "--", str(path)]) == 1, what
        said = capsys.readouterr().err
        assert said.startswith("perfkit: "), what
        assert is_one_sentence(said.removesuffix("\n")), what


def test_a_folder_of_them_still_lists_the_good_ones(odd):
    folder, _ = odd
    good = {store.save(finding(), folder), store.save(finding(), folder)}
    write_small(folder, KINDS["finding"].sound)
    listed = store.findings(folder)
    assert set(listed[listed.problem == ""].path) == good
    assert len(listed) > len(BROKEN)
    assert all(map(is_one_sentence, listed.problem[listed.problem != ""]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: os.truncate(path, 5000), "is cut off"),
        (Path.unlink, "cannot be read"),
    ],
    ids=["shrinks", "goes"],
)
def test_a_file_that_changes_meanwhile_is_a_sentence(
    tmp_path, monkeypatch, change, said
):
    path, looked_at = tmp_path / "x.json", Path.is_file
    path.write_bytes(KINDS["finding"].sound)
    # It changes just before it is read.
    monkeypatch.setattr(Path, "is_file", lambda p: looked_at(p) and (change(path), 1))
    with pytest.raises(BadFileError, match=said):
        store.load(path)
