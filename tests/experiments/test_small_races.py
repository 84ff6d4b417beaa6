"""The two small experiments whose variants are different lines for the same work."""

import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.experiments import embedding_lookup, experiment, vectorised
from perfkit.experiments import embedding_lookup as lookups
from perfkit.experiments import vectorised as row_sums
from perfkit.measure.measurement import Arm, Measurement
from perfkit.measure.tick import READY, REFUSED, Note, Tick
from tests.findings.made import trial

NAMES = ("vectorised", "embedding-lookup")


def measured(name, rates, rounds=3):
    asked = experiment(name)
    trials = [
        trial(variant, rate, number)
        for number in range(1, rounds + 1)
        for variant, rate in rates.items()
    ]
    arms = tuple(Arm(variant, list, against=asked.baseline) for variant in rates)
    found = Measurement(arms=arms, trials=tuple(trials), baseline=asked.baseline)
    return asked.verdict(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_arm_says_what_it_changes_and_travels(name):
    arms = experiment(name).variants()
    assert next(iter(arms)) == experiment(name).baseline
    assert all(arm.changes and arm.against in arms for arm in arms.values())
    assert all(pickle.loads(pickle.dumps(arm)).changes for arm in arms.values())


def test_a_step_counts_what_it_has_done():
    asked = experiment("vectorised", rows=250, columns=3)
    for name, rows in (("row loop", 100), ("einsum", 250)):
        work = asked.variants()[name].work()
        assert next(work) is READY
        assert next(work).examples % (50 if name == "row loop" else rows) == 0
        work.close()
    work = experiment("embedding-lookup", words=9, batch=7).variants()["lookup"].work()
    ticks = [item for _, item in zip(range(3), work, strict=False)]
    assert all(isinstance(t, Tick) and t.examples % 7 == 0 for t in ticks[1:])


@pytest.mark.parametrize("name", NAMES)
def test_ways_that_give_the_right_answer_are_not_refused(name):
    assert list(experiment(name).prepare()) == [Note(REFUSED, {})]


def test_sums_and_vectors_that_are_wrong_are_refused(monkeypatch):
    monkeypatch.setitem(vectorised._SUMS, "einsum", lambda data: data[:, 0])
    (note,) = experiment("vectorised").prepare()
    assert list(note.value) == ["einsum"]
    ways = embedding_lookup._WAYS
    monkeypatch.setitem(ways, "lookup", lambda table: lambda ids: 0 * table[ids])
    (note,) = experiment("embedding-lookup").prepare()
    assert note.value == {"lookup": "gives other vectors than the table holds"}


def test_the_fastest_line_is_named_with_its_gain():
    found = measured("vectorised", {"row loop": 100.0, "einsum": 900.0})
    assert found.headline.startswith('"einsum" is fastest here: 880 rows')
    assert '"row loop" (95 % interval' in found.headline
    assert found.next == 'Change this line: `np.einsum("ij,ij->i", data, data)`.'
    assert found.winner == "einsum"


def test_what_no_model_can_learn_through_is_never_the_winner():
    rates = {"one-hot product": 100.0, "lookup": 500.0, "NumPy index": 9000.0}
    found = measured("embedding-lookup", rates)
    assert found.winner == "lookup"
    assert found.next == "Change this line: `keras.layers.Embedding(words, width)`."
    assert any('"NumPy index" reaches' in fact for fact in found.because)


def test_a_loop_that_nothing_beats_is_kept():
    found = measured("vectorised", {"row loop": 900.0, "einsum": 300.0})
    assert found.winner == ""
    assert found.headline.startswith('Nothing is shown to be faster than "row loop"')


def test_noise_is_no_reason_to_keep_a_loop():
    found = measured("vectorised", {"row loop": 100.0, "einsum": 107.0}, rounds=1)
    assert found.winner == ""
    assert found.headline.startswith("Too noisy to say whether anything is faster")
    assert found.next.startswith("End what else runs on this machine")


def test_the_advised_layer_is_the_one_that_was_timed(monkeypatch):
    made = []
    real = keras.layers.Embedding

    def layer(*sizes):
        made.append(sizes)
        return real(*sizes)

    monkeypatch.setattr(keras.layers, "Embedding", layer)
    lookups.embedding(lookups.table(9, 4))(lookups.ids(3, 9))
    assert made == [(9, 4)]


@pytest.mark.parametrize(
    "name", [name for name in vectorised._LINES if name != "row loop"]
)
def test_an_advised_line_gives_the_sums_that_were_timed(name):
    data = row_sums.table(1200, 3)
    given = eval(vectorised._LINES[name], {"np": np, "tf": tf, "data": data})
    sums = given(data) if callable(given) else given
    assert np.asarray(sums) == pytest.approx(vectorised._way(name)(data))


def test_nothing_is_claimed_before_anything_is_measured():
    for name in NAMES:
        arms = tuple(experiment(name).variants().values())
        found = experiment(name).verdict(Measurement(arms=arms))
        assert (found.winner, found.headline) == ("", "Nothing could be timed.")
