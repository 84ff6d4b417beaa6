import itertools
import math
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.experiments import embedding_lookup as lookups
from perfkit.experiments import experiment, small_files, vectorised
from perfkit.experiments.shared import cache
from perfkit.measure.tick import READY, REFUSED, Note, Tick
from tests.experiments import races

NAMES = ("vectorised", "embedding-lookup")


def test_a_product_that_no_memory_holds_is_refused():
    with pytest.raises(BadParameterError, match="would take 262 GB; choose fewer"):
        experiment("embedding-lookup", words=1_000_000, batch=65_536)


def test_a_step_counts_what_it_has_done():
    asked = experiment("vectorised", rows=250, columns=3)
    for name, rows in (("row loop", 50), ("einsum", 250)):
        work = asked.make_variants()[name].work()
        assert next(work) is READY
        assert next(work).examples % rows == 0
        work.close()
    asked = experiment("embedding-lookup", words=9, batch=7)
    work = asked.make_variants()["lookup"].work()
    ticks = [item for _, item in zip(range(3), work, strict=False)]
    assert all(isinstance(t, Tick) and t.examples % 7 == 0 for t in ticks[1:])


@pytest.mark.parametrize("name", NAMES)
def test_ways_that_give_the_right_answer_are_not_refused(name):
    assert list(experiment(name).prepare()) == [Note(REFUSED, {})]


def test_sums_and_vectors_that_are_wrong_are_refused(monkeypatch):
    monkeypatch.setitem(vectorised._SUMS, "einsum", lambda data: data[:, 0])
    (note,) = experiment("vectorised").prepare()
    assert list(note.value) == ["einsum"]
    methods = lookups._VARIANTS
    monkeypatch.setitem(methods, "lookup", lambda table: lambda ids: 0 * table[ids])
    (note,) = experiment("embedding-lookup").prepare()
    assert note.value == {"lookup": "gives other vectors than the table holds"}


LOOKUPS = {"one-hot product": 100, "lookup": 500, "NumPy index": 9000}


@pytest.mark.parametrize(
    ("name", "rates", "winner", "code"),
    [
        ("vectorised", {"row loop": 100, "einsum": 900}, "einsum", "np.einsum("),
        # No model can learn through NumPy.
        ("embedding-lookup", LOOKUPS, "lookup", "keras.layers.Embedding(words, width)"),
    ],
)
def test_the_fastest_line_is_named_with_its_gain(name, rates, winner, code):
    found = experiment(name).verdict(races.measured(rates))
    assert found.winner == winner
    assert code in found.edits[0].new
    assert ' times as fast as "' in found.much


def test_the_advised_layer_is_the_one_that_was_timed(monkeypatch):
    layer = Mock(side_effect=keras.layers.Embedding)
    monkeypatch.setattr(keras.layers, "Embedding", layer)
    lookups.embedding(lookups.table(9, 4))(lookups.ids(3, 9))
    layer.assert_called_once_with(9, 4)


@pytest.mark.parametrize("name", vectorised._SUMS)
def test_every_sum_and_the_lines_that_are_shown_are_that_of_exact_arithmetic(name):
    # More rows than a chunk, and no multiple of it.
    data = vectorised.table(2300, 7)
    *lines, last = vectorised._CHOICES[name].lines.splitlines()
    # The last one of a function that gives something back is what it gives.
    last = last if last.lstrip().startswith("sums") else f"sums = {last}"
    scope = {"np": np, "tf": tf, "data": data}
    exec("\n".join([*lines, last]), scope)
    exact = [math.fsum(x * x for x in row) for row in data.tolist()]
    for sums in (vectorised._method(name)(data), scope["sums"]):
        np.testing.assert_allclose(sums, exact, rtol=1e-12)


@pytest.mark.parametrize("name", lookups._VARIANTS)
def test_every_lookup_and_the_lines_that_are_shown_give_what_the_table_holds(name):
    vectors, chosen = lookups.table(20, 3), lookups.ids(500, 20)
    assert set(chosen.tolist()) == set(range(20))
    held = np.array([vectors[int(word)] for word in chosen])
    assert np.asarray(lookups._VARIANTS[name](vectors)(chosen)) == pytest.approx(held)
    scope = {"np": np, "tf": tf, "keras": keras, "vectors": vectors}
    scope |= {"table": tf.constant(vectors), "words": 20, "width": 3}
    exec(experiment("embedding-lookup").code[name], scope)
    found = np.asarray(scope["look_up"](chosen))
    # A layer draws vectors of its own.
    assert found.shape == held.shape
    if name != "lookup":
        assert found == pytest.approx(held)


def test_tables_are_the_same_for_the_same_seed():
    np.testing.assert_array_equal(vectorised.table(5, 3), vectorised.table(5, 3))
    np.testing.assert_array_equal(lookups.table(5, 3), lookups.table(5, 3))


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return experiment("small-files", count=200, size=1)


def test_each_way_reads_every_example_that_was_written_from_files_of_its_own(asked):
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
    files, shards = map(asked._paths, (small_files.WARM_FILES, small_files.WARM_SHARDS))
    for read in (small_files.from_files(files), small_files.from_shards(shards)):
        assert [len(example.numpy()) for example in read] == [1000] * 200


@pytest.mark.parametrize("shards", [900, 100])
@pytest.mark.parametrize(("share", "warned"), [(1.0, False), (0.1, True)])
def test_a_pass_that_was_not_cold_is_warned_of(asked, share, warned, shards):
    rates = {small_files.FILES: 100, small_files.SHARDS: shards}
    told = {name: {small_files._FROM_DISK: share} for name in rates}
    found = asked.verdict(races.measured(rates, told=told))
    assert found.winner == (small_files.SHARDS if shards == 900 else "")
    assert bool(found.warnings) == warned
    assert any("came from the disk" in why for why in found.because)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_of_memory_nothing_is_said_where_the_disk_was_read(asked, share):
    warm = small_files.WARM_FILES, small_files.WARM_SHARDS
    rates = dict.fromkeys((small_files.FILES, small_files.SHARDS, *warm), 100)
    told = {name: {small_files._FROM_DISK: share} for name in warm}
    found = asked.verdict(races.measured(rates, told=told))
    said = [why for why in found.because if "memory" in why]
    assert len(said) == 1
    assert said[0].endswith("up to 60 %: of memory nothing is said.") == (share > 0)


def test_how_much_came_from_the_disk_is_told_of_every_pass(asked, monkeypatch):
    list(asked.prepare())
    monkeypatch.setattr(small_files, "_from_disk", itertools.count(0, 500).__next__)
    work = asked.make_variants()[small_files.WARM_FILES].work()
    told = next(one for one in work if isinstance(one, Note))
    # Fewer batches than are counted at a time: at the end of the pass.
    assert told == Note(small_files._FROM_DISK, 500 / (200 * 1000))


def test_files_that_are_gone_are_a_sentence(asked):
    list(asked.prepare())
    asked._paths(small_files.FILES)
    next(asked._folder(small_files.FILES).glob("*/*.bin")).unlink()
    with pytest.raises(small_files.BadFileError, match="run again"):
        asked._paths(small_files.FILES)
