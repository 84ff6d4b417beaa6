"""What perfkit brings along was measured, and is as it was written."""

import datetime
import hashlib

import pytest

import perfkit
from perfkit.passports.passport import FOLDER, PASSPORT

FILES = sorted(path for path in FOLDER.glob("*/*.json"))


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def sums():
    lines = (FOLDER / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def test_every_recorded_machine_has_a_passport():
    assert set(perfkit.recorded()) == {path.parent.name for path in FILES} != set()
    # A passport is small enough for a class.
    sizes = [path.stat().st_size for path in FILES if path.name == PASSPORT]
    assert max(sizes) < 50_000


@pytest.mark.parametrize("machine", perfkit.recorded())
def test_a_passport_says_when_where_and_how_it_was_recorded(machine):
    passport = perfkit.recorded()[machine]
    assert datetime.datetime.fromisoformat(passport.recorded).tzinfo
    assert passport.label
    assert passport.machine.cpu
    assert passport.perfkit
    assert passport.budget_s >= 60
    assert passport.parameters
    assert passport.whole
    assert passport.microbenchmarks
    assert passport.trainings
    assert not (passport.host)
    assert not (passport.user)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_was_changed_since_it_was_recorded(path):
    assert sums()[name_of(path)] == hashlib.sha256(path.read_bytes()).hexdigest()
