"""Small files and shards, cold and warm."""

import pytest

from perfkit.experiments import experiment, small_files
from perfkit.experiments.shared import cache
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import READY, REFUSED, Note, Tick
from tests.findings.made import trial


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return experiment("small-files", count=200, size=1)


def measured(asked, rates, **notes):
    trials = tuple(
        trial(one, rate, number, notes=notes if "cold" in one else {})
        for number in (1, 2, 3)
        for one, rate in rates.items()
    )
    variants = tuple(
        Variant(name, list, against=a.against) for name, a in asked.items()
    )
    return Measurement(variants=variants, trials=trials, baseline=small_files.FILES)


def test_each_way_reads_every_example_and_has_files_of_its_own(asked):
    notes = [told for told in asked.prepare() if isinstance(told, Note)]
    assert {note.name for note in notes} <= {"progress", REFUSED}
    places = set()
    for name, variant in asked.make_variants().items():
        places.add(tuple(asked._paths(name)))
        work = variant.work()
        assert next(work) is READY
        seen = 0
        while seen < asked.count:
            told = next(work)
            seen += told.examples if isinstance(told, Tick) else 0
        assert seen % asked.count == 0 or seen > asked.count
        work.close()
    assert len(places) == len(asked.make_variants())


def test_what_is_read_is_what_was_written(asked):
    list(asked.prepare())
    for name, read in (
        (small_files.WARM_FILES, small_files.from_files),
        (small_files.WARM_SHARDS, small_files.from_shards),
    ):
        sizes = [len(example.numpy()) for example in read(asked._paths(name))]
        assert sizes == [1000] * 200


@pytest.mark.parametrize(("share", "warned"), [(1.0, False), (0.1, True)])
def test_a_pass_that_was_not_cold_is_warned_of(asked, share, warned):
    rates = {small_files.FILES: 100, small_files.SHARDS: 900}
    notes = {small_files._FROM_DISK: share}
    found = asked.verdict(measured(asked.make_variants(), rates, **notes))
    assert found.winner == small_files.SHARDS
    assert bool(found.warnings) == warned
    assert any("came from the disk" in why for why in found.because)


def test_files_that_are_gone_are_a_sentence(asked):
    list(asked.prepare())
    asked._paths(small_files.FILES)
    next(asked._folder(small_files.FILES).glob("*/*.bin")).unlink()
    with pytest.raises(small_files.BadFileError, match="run again"):
        asked._paths(small_files.FILES)
