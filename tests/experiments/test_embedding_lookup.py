import numpy as np
import pytest

from perfkit.experiments import embedding_lookup as lookups

WAYS = (
    lookups.one_hot,
    lookups.embedding,
    lookups.numpy_one_hot,
    lookups.numpy_index,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_gives_the_vectors_that_the_table_holds(way):
    table, ids = lookups.table(20, 3), lookups.ids(50, 20)
    given = np.asarray(way(table)(ids))
    for word, vector in zip(ids, given, strict=True):
        assert vector.tolist() == pytest.approx(table[int(word)].tolist())


def test_words_are_all_of_the_table():
    ids = lookups.ids(1000, 20)
    assert set(ids.tolist()) == set(range(20))
