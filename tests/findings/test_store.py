import errno
import math
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import perfkit
from perfkit.errors import PerfkitError
from perfkit.findings import store
from perfkit.findings.standing import measurement
from tests.findings.made import finding, trial

pytestmark = pytest.mark.usefixtures("here")


def test_what_is_saved_is_loaded_again_and_its_numbers_follow_from_the_file_alone():
    saved = finding(rounds=4)
    path = store.save(saved)
    again = store.load(path)
    assert again.path == saved.path == path
    assert again.trials[0].ticks == saved.trials[0].ticks
    for field in ("machine", "timings", "comparisons", "verdict", "parameters"):
        assert getattr(again, field) == getattr(saved, field)
    # Once through a file, nothing changes any more.
    assert store.to_json(again) == store.to_json(saved)
    follows = measurement(again)
    assert follows.timings == saved.timings
    assert follows.comparisons == saved.comparisons
    assert follows.noise_floor == saved.noise_floor


@pytest.mark.fault("findings", "clock jump", sees="Every finding gets its own file.")
def test_two_runs_of_the_same_second_do_not_collide():
    assert len({store.save(finding()) for _ in range(20)}) == 20


def test_notes_may_hold_numpy_and_what_is_no_number_but_not_themselves():
    notes = {"loss": math.nan, "rates": np.arange(3), "one": np.float32(0.5)}
    extra = [trial("naive", 1000, 4, notes={"x": math.inf})]
    kept = store.load(store.save(finding(notes=notes | {"at": {1: 2}}, extra=extra)))
    plain = {"loss": None, "rates": [0, 1, 2], "one": 0.5, "at": {"1": 2}}
    assert kept.notes == plain
    ring = {}
    ring["ring"] = ring
    with pytest.raises(PerfkitError, match="cannot be kept"):
        store.save(finding(notes=ring))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_rate_that_is_no_number_is_refused_before_it_is_a_file(value):
    sound = finding()
    odd = replace(sound, timings=(replace(sound.timings[0], high=value),))
    with pytest.raises(PerfkitError, match=r"cannot be kept.*timings\[0\]\.high"):
        store.save(odd)
    assert not Path(store.FOLDER).exists()


@pytest.mark.fault(
    "findings", "full disk", sees="perfkit asks you to free some space and save again."
)
def test_a_limit_on_file_size_is_met_half_way_through_a_write():
    path = store.save(finding(rounds=1))
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    grown = finding(rounds=3)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(PerfkitError, match=r"free some space .* still in memory"):
            store.save(grown, path=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert grown.path is None
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.fault("findings", "read-only", sees="perfkit asks for another folder.")
def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(PerfkitError, match="choose another folder"):
        store.save(finding(), tmp_path / "taken")


FILES = "open files with `ulimit -n 4096`"


@pytest.mark.parametrize(
    ("number", "todo"),
    [(errno.ENOSPC, "free some"), (errno.EMFILE, FILES), (errno.EROFS, "choose anoth")],
)
@pytest.mark.fault(
    "findings", "open files, full disk", sees="perfkit says how to save the finding."
)
def test_what_the_system_refuses_is_said_with_what_to_do(monkeypatch, number, todo):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    kept = finding()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(PerfkitError, match=todo):
            store.save(kept)
    assert store.load(store.save(kept)).timings == kept.timings


@pytest.mark.fault(
    "findings", "SIGKILL", sees="The file holds either the old finding or the new one."
)
def test_a_writer_that_is_killed_leaves_a_whole_file():
    lines = """
import sys
sys.path[:0] = PATHS
from tests.findings.made import finding
from perfkit.findings import store
states = [finding(rounds=number) for number in (1, 2, 3)]
path = store.save(states[0])
print(path, flush=True)
while True:
    for state in states:
        store.save(state, path=path)
        print("saved", flush=True)
""".replace("PATHS", repr([str(Path(perfkit.__file__).parents[1])]))
    for saves in (1, 4, 9):
        command = [sys.executable, "-c", lines]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        path = Path(writer.stdout.readline().strip())
        for _ in range(saves):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert store.load(path).timings
    assert len(store.findings()) == 3


def test_findings_are_listed_with_the_newest_first_and_what_is_wrong():
    for day in (3, 1, 2):
        store.save(finding(recorded=f"2025-03-0{day}T10:00:00+01:00"))
    listed = store.findings()
    assert list(listed.recorded) == [f"2025-03-0{day} 10:00" for day in (3, 2, 1)]
    columns = "recorded, experiment, headline, winner, machine, path, problem"
    assert ", ".join(listed.columns) == columns
    assert listed.winner.unique() == ["prefetched"]
    assert listed.machine.str.contains("2 of 8 cores").all()
    # A bad file is listed with what is wrong, and hides no other.
    good = store.load(listed.path[0]).path
    good.with_name("cut.json").write_bytes(good.read_bytes()[:-30])
    good.with_name("folder.json").mkdir()
    good.with_name("notes.txt").write_text("not ours")
    listed = store.findings().set_index(store.findings().path.map(lambda p: p.name))
    assert next(iter(listed.index)) == good.name
    assert listed.recorded[good.name].startswith("2025-03-03")
    assert listed.problem[good.name] == ""
    assert "cut off" in listed.problem["cut.json"]
    assert listed.problem["folder.json"] == "folder.json is not a file."
    assert len(listed) == 5
