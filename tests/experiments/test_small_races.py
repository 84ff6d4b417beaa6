"""The two small experiments whose variants are different lines for the same work."""

import math
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.experiments import embedding_lookup as lookups
from perfkit.experiments import experiment, vectorised
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import READY, REFUSED, Note, Tick
from tests.findings.made import trial

NAMES = ("vectorised", "embedding-lookup")


def measured(name, rates, rounds=3):
    asked = experiment(name)
    trials = [
        trial(one, rate, number)
        for number in range(1, rounds + 1)
        for one, rate in rates.items()
    ]
    variants = tuple(Variant(one, list, against=asked.baseline) for one in rates)
    found = Measurement(
        variants=variants, trials=tuple(trials), baseline=asked.baseline
    )
    return asked.verdict(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_variant_says_what_it_changes_and_travels(name):
    variants = experiment(name).make_variants()
    assert next(iter(variants)) == experiment(name).baseline
    assert all(one.changes and one.against in variants for one in variants.values())
    assert all(pickle.loads(pickle.dumps(one)).changes for one in variants.values())


def test_a_step_counts_what_it_has_done():
    asked = experiment("vectorised", rows=250, columns=3)
    for name, rows in (("row loop", 100), ("einsum", 250)):
        work = asked.make_variants()[name].work()
        assert next(work) is READY
        assert next(work).examples % (50 if name == "row loop" else rows) == 0
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


@pytest.mark.parametrize(
    ("name", "rates", "winner", "code"),
    [
        ("vectorised", {"row loop": 100, "einsum": 900}, "einsum", "np.einsum("),
        # No model can learn through NumPy.
        (
            "embedding-lookup",
            {"one-hot product": 100, "lookup": 500, "NumPy index": 9000},
            "lookup",
            "keras.layers.Embedding(words, width)",
        ),
    ],
)
def test_the_fastest_line_is_named_with_its_gain(name, rates, winner, code):
    found = measured(name, rates)
    assert found.winner == winner
    assert code in found.edits[0].new
    assert " times as fast: " in found.much


@pytest.mark.parametrize(
    ("rates", "rounds", "sure", "headline"),
    [
        ({"row loop": 900, "einsum": 300}, 3, "sure", 'Keep "row loop"'),
        ({"row loop": 100, "einsum": 107}, 1, "not known yet", "Whether anything is"),
    ],
)
def test_what_nothing_is_shown_to_beat_is_kept(rates, rounds, sure, headline):
    found = measured("vectorised", rates, rounds)
    assert (found.winner, found.sure) == ("", sure)
    assert found.headline.startswith(headline)


def test_the_advised_layer_is_the_one_that_was_timed(monkeypatch):
    made = []
    real = keras.layers.Embedding

    def layer(*sizes):
        made.append(sizes)
        return real(*sizes)

    monkeypatch.setattr(keras.layers, "Embedding", layer)
    lookups.embedding(lookups.table(9, 4))(lookups.ids(3, 9))
    assert made == [(9, 4)]


@pytest.mark.parametrize("name", vectorised._CHOICES)
def test_the_lines_that_are_shown_give_the_sums_that_were_timed(name):
    data = vectorised.table(1200, 3)
    *lines, last = vectorised._CHOICES[name].lines.splitlines()
    # The last one of a function that gives something back is what it gives.
    last = last if last.lstrip().startswith("sums") else f"sums = {last}"
    scope = {"np": np, "tf": tf, "data": data}
    exec("\n".join([*lines, last]), scope)
    assert np.asarray(scope["sums"]) == pytest.approx(vectorised._method(name)(data))


@pytest.mark.parametrize("name", lookups._SHOWN)
def test_the_lines_that_are_shown_look_the_same_words_up(name):
    vectors, chosen = lookups.table(9, 4), lookups.ids(5, 9)
    scope = {"np": np, "tf": tf, "keras": keras, "vectors": vectors}
    scope |= {"table": tf.constant(vectors), "words": 9, "width": 4}
    exec(experiment("embedding-lookup").code[name], scope)
    found = np.asarray(scope["look_up"](chosen))
    # A layer draws vectors of its own.
    assert found.shape == (5, 4)
    if name != "lookup":
        assert found == pytest.approx(vectors[chosen])


@pytest.mark.parametrize("name", vectorised._SUMS)
def test_every_sum_is_that_of_exact_arithmetic(name):
    # More rows than a chunk, and no multiple of it.
    data = vectorised.table(2300, 7)
    exact = [math.fsum(x * x for x in row) for row in data.tolist()]
    np.testing.assert_allclose(vectorised._method(name)(data), exact, rtol=1e-12)


@pytest.mark.parametrize("name", lookups._VARIANTS)
def test_every_lookup_gives_the_vectors_that_the_table_holds(name):
    table, ids = lookups.table(20, 3), lookups.ids(500, 20)
    assert set(ids.tolist()) == set(range(20))
    given = np.asarray(lookups._VARIANTS[name](table)(ids))
    for word, vector in zip(ids, given, strict=True):
        assert vector.tolist() == pytest.approx(table[int(word)].tolist())


def test_tables_are_the_same_for_the_same_seed():
    np.testing.assert_array_equal(vectorised.table(5, 3), vectorised.table(5, 3))
    np.testing.assert_array_equal(lookups.table(5, 3), lookups.table(5, 3))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_claimed_before_anything_is_measured(name):
    variants = tuple(experiment(name).make_variants().values())
    found = experiment(name).verdict(Measurement(variants=variants))
    assert (found.winner, found.headline) == ("", "Nothing could be timed.")
