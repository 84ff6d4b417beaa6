"""What one card gave, an NVIDIA H200 in a virtual machine, read where there is none."""

import functools
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import perfkit
from benchmarks.record import reworded
from perfkit.machine.checks import checks
from perfkit.machine.nvml import READINGS
from perfkit.training.account import charge
from perfkit.training.account.trace import read
from perfkit.units import UNKNOWN

RECORDED = Path(__file__).parent / "recorded"
PASSPORT = RECORDED / "passport.json"
MEASURED = sorted({*RECORDED.glob("*.json")} - {PASSPORT})
each = pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.stem)
# A number that nobody knows, in the middle of a sentence.
HOLE = re.compile(rf" {re.escape(UNKNOWN)}[×.,;) ]")
load = functools.cache(perfkit.load)


@each
def test_no_sentence_about_it_has_a_hole(path):
    said = reworded(load(path)).verdict
    sentences = (said.headline, said.much, *said.warnings, *said.because, said.next)
    assert not [sentence for sentence in sentences if HOLE.search(sentence)]


@each
def test_it_makes_a_page_that_names_the_card(path, tmp_path):
    page = perfkit.export(load(path), tmp_path / "page.html").read_text()
    assert "NVIDIA H200" in page
    assert "GPU busy" in page


@each
def test_every_reading_is_one_that_a_card_can_give(path):
    found = load(path)
    (gpu,) = found.machine.gpus
    most = {
        "busy": 1,
        "memory": gpu.memory,
        "power": 700,
        "sm_clock": gpu.clocks.sm_max,
        "temperature": 90,
        "link_generation": gpu.link.generation_max,
        "link_width": gpu.link.width_max,
    }
    assert {*most, "throttle"} == {*READINGS}
    for name, limit in most.items():
        read = [value for value in found.samples[f"gpu0_{name}"] if value is not None]
        assert read, name
        assert 0 <= min(read) <= max(read) <= limit, name


@pytest.mark.parametrize(
    ("name", "headline", "sure"),
    [
        ("execution-mode", "Compile the step with XLA.", "likely"),
        ("contention", "A pipeline that waits slows this training.", "likely"),
        ("diagnosis-mlp", "Make the batch 8 times as large.", "likely"),
        ("photos-ladder", "all five runs 25 times as fast as photos as found.", "sure"),
        ("diagnosis-serial-map", "Run the maps in parallel.", "likely"),
        # Its two processes of one work were 1.4 times apart.
        (
            "cpu-or-gpu",
            "This run does not show whether to train on the GPU.",
            "not known yet",
        ),
    ],
)
def test_what_it_said_is_what_is_said_now(name, headline, sure):
    said = reworded(load(RECORDED / f"{name}.json")).verdict
    assert (said.headline, said.sure) == (headline, sure)


def test_no_part_of_the_card_was_faster_than_theory_allows():
    parts = load(PASSPORT).microbenchmarks
    timed = [part for part in parts if part.group == "GPU" and part.rate]
    assert {part.name for part in timed} >= {"GPU product, bfloat16", "from the GPU"}
    assert not [part.name for part in timed if part.limit and part.low > part.limit]


def test_the_doctor_warns_of_nothing():
    machine = load(PASSPORT).machine
    assert not [check for check in checks(machine) if check.status != "ok"]


def lines_of_a_step(name, folder, monkeypatch):
    """The account of two steps, and for how many seconds the card was busy in them."""
    with tarfile.open(RECORDED / f"account-{name}.tar.xz") as recorded:
        for member in recorded.getmembers():
            path = folder / member.name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(recorded.extractfile(member).read())
    # Recorded before these were noted.
    seen = json.loads((folder / charge.RAW).read_text())
    names = ("padded", "memory", "models", "new_models", "iterators")
    seen = dict.fromkeys(names, ()) | {"fills": (False, False)} | seen
    for operations in seen["operations"].values():
        operations.update((n, [*o, ""][:6]) for n, o in [*operations.items()])
    (folder / charge.RAW).write_text(json.dumps(seen))
    monkeypatch.setattr(charge, "_ENOUGH_S", 0.001)
    (note,) = charge.charge(str(folder))
    lines = note.value["lines"]
    kernels = read(folder / "window" / "vm.xplane.pb", 0.0).kernels
    order = np.argsort(kernels.begin)
    begin, end = kernels.begin[order], kernels.end[order]
    until = np.maximum.accumulate(np.concatenate([[0.0], end[:-1]]))
    busy = np.maximum(0.0, end - np.maximum(begin, until)).sum()
    return {(line.file, line.line): line for line in lines}, busy


@pytest.mark.parametrize("name", ["xla", "graph"])
def test_all_seconds_of_the_card_are_on_lines(name, tmp_path, monkeypatch):
    rows, busy = lines_of_a_step(name, tmp_path, monkeypatch)
    computed = {
        place: row.spent("computing") - row.starting_s for place, row in rows.items()
    }
    assert sum(computed.values()) == pytest.approx(busy, rel=0.03)
    # The second convolution, on pictures of full size, is the largest.
    assert max(computed, key=computed.get) == ("net.py", 10)
    assert computed[f"fit_{name}.py", 16] < 0.15 * busy
    fed = rows[f"fit_{name}.py", 16]
    assert "copying to the GPU" in fed.parts
    assert fed.seconds["input"] > 0
