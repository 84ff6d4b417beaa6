import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.trial import REFUSED, Note
from perfkit.questions import experiment, predict_in_loop
from tests.questions import races

ONE, MOST = "predict 1 row", "predict 1,024 rows"
SIZES = {ONE: 1, "predict 32 rows": 32, MOST: 1024}
WAYS = predict_in_loop._WAYS


@pytest.fixture(scope="module")
def scored():
    """A network, and the scores of 40 rows by arithmetic."""
    question = experiment("predict-in-a-loop")
    network = predict_in_loop.MODELS[question.model].build()
    rows = question._rows(40, ONE)
    hidden, bias, out, last = network.get_weights()
    return network, np.maximum(rows @ hidden + bias, 0) @ out + last


@pytest.mark.parametrize("name", WAYS)
def test_each_way_and_its_lines_give_the_scores_of_the_network(name, scored):
    network, exact = scored
    question = experiment("predict-in-a-loop")
    pieces = question._rows(40, name)[:3]
    scores = [*WAYS[name][0](network, pieces)]
    assert len(scores[0]) == min(SIZES.get(name, 1), 40)
    exact = exact[: sum(map(len, scores))]
    np.testing.assert_allclose(np.concatenate(scores), exact, atol=1e-5)
    scope = {"np": np, "tf": tf, "model": network, "rows": pieces, "batches": pieces}
    exec(question.code[name], scope)
    np.testing.assert_allclose(scope["scores"], exact[-len(scores[-1]) :], atol=1e-5)


def test_a_way_that_gives_other_scores_is_refused_and_no_other(monkeypatch):
    question = experiment("predict-in-a-loop", model="tiny-dense")
    wrong = (lambda model, rows: (2 * model(row[np.newaxis]) for row in rows), "")
    monkeypatch.setitem(WAYS, "model(x)", wrong)
    refused = {"model(x)": "gives other scores than predict"}
    assert list(question.prepare()) == [Note(REFUSED, refused)]


def test_what_a_call_takes_is_a_row():
    verdict = races.sayings("predict-in-a-loop")
    rows = verdict(races.measured({ONE: 25, MOST: 25_600})).facts
    assert [row.label for row in rows] == [f"One call: {name}" for name in (ONE, MOST)]
    # 1 row of 25 a second, and 1,024 of 25,600.
    assert all(38 < float(row.value.removesuffix(" ms")) < 42 for row in rows)
