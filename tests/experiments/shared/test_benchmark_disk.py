import itertools

import pytest

from perfkit.errors import RunError
from perfkit.experiments.shared import benchmark
from perfkit.machine import disk as disks
from perfkit.measure.tick import READY, Pause, Tick


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/large").write_bytes(b"x" * 3_000_000)
    (tmp_path / "small").write_bytes(b"y" * 5000)
    (tmp_path / "tiny").write_bytes(b"z")
    return tmp_path


@pytest.mark.parametrize(
    ("most", "names"), [(2_000_000, ["large"]), (10**9, ["large", "small"])]
)
def test_the_largest_files_are_read_whole_until_the_speed_shows(
    folder, monkeypatch, run, most, names
):
    monkeypatch.setattr(benchmark, "_OWN", most)
    _, found = run(benchmark.make(str(folder)))
    assert [path.rpartition("/")[2] for path in found] == names


def test_each_pass_counts_every_byte_and_forgets_before(folder):
    work = benchmark.read(str(folder))
    assert next(work) is READY
    told = list(itertools.islice(work, 40))
    ends = [n for n, item in enumerate(told) if item == Pause(benchmark.FORGETTING)]
    for start, end in itertools.pairwise(ends):
        ticks = [item.examples for item in told[start:end] if isinstance(item, Tick)]
        assert sum(ticks) == 3_005_000


def test_a_folder_without_files_is_one_sentence(tmp_path, run):
    with pytest.raises(RunError, match="no file of 4 KB or more"):
        run(benchmark.make(str(tmp_path)))


def test_without_a_folder_a_file_is_made_once(tmp_path, monkeypatch, run):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(benchmark, "_OWN", 2 * benchmark._CHUNK)
    told, (path,) = run(benchmark.make(""))
    assert told
    with open(path, "rb") as file:
        data = file.read()
    assert len(data) == 2 * benchmark._CHUNK
    # Random: no byte is much more frequent than the rest.
    assert max(data.count(bytes([n])) for n in range(256)) < 2 * len(data) / 256
    assert run(benchmark.make("")) == ([], (path,))


@pytest.mark.parametrize(("came", "forgets"), [(3_000_000, True), (2_000_000, False)])
def test_files_count_as_forgotten_when_all_that_is_read_comes_from_the_disk(
    folder, monkeypatch, came, forgets
):
    told = itertools.count(0, came)
    monkeypatch.setattr(disks, "fetched", lambda *_: next(told))
    assert benchmark.forgets([str(folder / "inner/large")]) is forgets


def test_where_nobody_can_say_nothing_is_claimed(folder, monkeypatch):
    monkeypatch.setattr(disks, "fetched", lambda: None)
    assert not benchmark.forgets([str(folder / "inner/large")])
