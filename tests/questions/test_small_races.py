import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.trial import READY, REFUSED, Note, Tick
from perfkit.errors import BadParameterError
from perfkit.questions import embedding_lookup as lookups
from perfkit.questions import experiment, small_files, vectorised
from tests.questions import races

FILES, SHARDS = "files, cold", "shards, cold"


@pytest.mark.parametrize(
    ("asked", "name", "each"),
    [
        (experiment("vectorised", rows=250, columns=3), "row loop", 100),
        (experiment("embedding-lookup", words=9, batch=7), "lookup", 7),
    ],
)
def test_a_step_counts_what_it_has_done(asked, name, each):
    work = asked.make_variants()[name].work()
    assert next(work) is READY
    assert next(work) % each == 0
    work.close()


def test_what_gives_a_wrong_answer_or_fits_in_no_memory_is_refused(monkeypatch):
    for name in ("vectorised", "embedding-lookup"):
        assert list(experiment(name).prepare()) == [Note(REFUSED, {})]
    monkeypatch.setitem(vectorised._SUMS, "einsum", (lambda data: data[:, 0], ""))
    (note,) = experiment("vectorised").prepare()
    assert list(note.value) == ["einsum"]
    wrong = (lambda table: lambda ids: 0 * table[ids]), ""
    monkeypatch.setitem(lookups._LOOKUPS, "lookup", wrong)
    (note,) = experiment("embedding-lookup").prepare()
    assert note.value == {"lookup": "gives other vectors than the table holds"}
    for name, asked, size in (
        ("embedding-lookup", {"words": 1_000_000, "batch": 65_536}, "262 GB"),
        ("embedding-lookup", {"width": 4096, "batch": 65_536, "words": 2}, "1.07 GB"),
        ("vectorised", {"rows": 1_000_000, "columns": 1000}, "8 GB"),
    ):
        with pytest.raises(BadParameterError, match=f"would take {size}; choose fewer"):
            experiment(name, **asked)


def test_a_lookup_that_wins_comes_with_the_line_to_type():
    rates = {"one-hot product": 100, "lookup": 500}
    found = experiment("embedding-lookup").verdict(races.measured(rates))
    assert found.winner == "lookup"
    assert "keras.layers.Embedding(*" in found.edits[0].new


@pytest.mark.parametrize("name", vectorised._SUMS)
def test_every_sum_and_the_lines_that_are_shown_are_that_of_exact_arithmetic(name):
    # More rows than a chunk, and no multiple of it.
    data = np.random.default_rng(0).standard_normal((2300, 7))
    *lines, last = experiment("vectorised").code[name].splitlines()
    # The last one of a function that gives something back is what it gives.
    last = last if last.lstrip().startswith("sums") else f"sums = {last}"
    scope = {"np": np, "tf": tf, "data": data}
    exec("\n".join([*lines, last]), scope)
    exact = [math.fsum(x * x for x in row) for row in data.tolist()]
    for sums in (vectorised._SUMS[name][0](data), scope["sums"]):
        np.testing.assert_allclose(sums, exact, rtol=1e-12)


@pytest.mark.parametrize("name", lookups._LOOKUPS)
def test_every_lookup_and_the_lines_that_are_shown_give_what_the_table_holds(name):
    asked = experiment("embedding-lookup", words=20, width=3, batch=500)
    vectors, ids = asked._draw()
    assert set(ids.tolist()) == set(range(20))
    held = np.array([vectors[int(word)] for word in ids])
    make, _ = lookups._LOOKUPS[name]
    assert np.asarray(make(vectors)(ids)) == pytest.approx(held)
    scope = {"np": np, "tf": tf, "keras": keras, "vectors": vectors}
    scope |= {"table": tf.constant(vectors), "words": 20}
    exec(asked.code[name], scope)
    assert np.asarray(scope["look_up"](ids)) == pytest.approx(held)


@pytest.fixture
def asked(own_cache):
    return experiment("small-files", count=200, size=1)


def test_each_way_reads_every_example_that_was_written_from_files_of_its_own(asked):
    list(asked.prepare())
    places = set()
    for name, variant in asked.make_variants().items():
        places.add(tuple(sorted(asked._folder(name).iterdir())))
        work = variant.work()
        assert next(work) is READY
        assert next(one for one in work if isinstance(one, Tick)).examples > 0
        work.close()
    assert len(places) == len(asked.make_variants())
    for name, (read, _) in small_files._WAYS.items():
        paths = [str(path) for path in asked._folder(name).iterdir()]
        assert [len(example.numpy()) for example in read(paths)] == [1000] * 200


@pytest.mark.parametrize(("share", "warned"), [(1.0, False), (0.1, True)])
def test_a_pass_that_was_not_cold_is_warned_of(asked, share, warned):
    rates = {FILES: 100, SHARDS: 900}
    told = {name: {small_files._FROM_DISK: share} for name in rates}
    found = asked.verdict(races.measured(rates, told=told))
    assert (found.winner, bool(found.warnings)) == (SHARDS, warned)
    shown = "100 % to 100 %" if share == 1 else "10 % to 10 %"
    assert [fact.value for fact in found.facts] == [shown, shown]


def test_how_much_came_from_the_disk_is_told_of_every_pass(asked, monkeypatch):
    list(asked.prepare())
    counter = itertools.count(0, 500).__next__
    monkeypatch.setattr(small_files.benchmark, "bytes_from_disk", counter)
    work = asked.make_variants()["files, warm"].work()
    told = next(one for one in work if isinstance(one, Note))
    # Fewer batches than are counted at a time: at the end of the pass.
    assert told == Note(small_files._FROM_DISK, 500 / (200 * 1000))
    next(asked._folder(FILES).glob("*.bin")).unlink()
    with pytest.raises(small_files.BadFileError, match="run again"):
        next(asked.make_variants()[FILES].work())
