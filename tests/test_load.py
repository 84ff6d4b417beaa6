"""``perfkit.load`` and ``perfkit show`` read whatever perfkit wrote."""

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError
from perfkit.findings import store
from tests.hostile.kinds import KINDS
from tests.machines.passports import passport, stopped


@pytest.mark.parametrize("make", [*(kind.make for kind in KINDS.values()), stopped])
def test_each_kind_of_document_is_read_again_and_shown(make, tmp_path, capsys):
    written = make()
    path = store.save(written, path=tmp_path / "it.json")
    found = perfkit.load(path)
    assert type(found) is type(written)
    assert store.to_json(found) == store.to_json(written)
    assert found.machine == written.machine
    assert found.path == written.path == path
    assert cli.main(["show", str(path)]) == 0
    assert capsys.readouterr().out.strip()


def test_a_passport_is_not_drawn_alone(tmp_path, capsys):
    store.save(passport(), path=tmp_path / "a.json")
    chart = ["--chart", str(tmp_path / "a.svg")]
    assert cli.main(["show", str(tmp_path / "a.json"), *chart]) == 2
    assert "There is no chart of this passport" in capsys.readouterr().err
    # A profile is compared with nothing.
    path = store.save(KINDS["profile"].make(), path=tmp_path / "it.json")
    with pytest.raises(BadFileError, match=r"it\.json is not a passport but a profile"):
        perfkit.compare(path, path)
