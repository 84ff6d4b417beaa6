import math

import numpy as np
import pytest

from perfkit.experiments import vectorised as row_sums

WAYS = {
    "by_number": row_sums.by_number,
    "by_row": row_sums.by_row,
    "at_once": row_sums.at_once,
    "in_chunks": row_sums.in_chunks,
    "einsum": row_sums.einsum,
    "tensorflow": row_sums.tensorflow,
    "graph": row_sums.graph(),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_gives_the_sums_of_exact_arithmetic(name):
    # More rows than a chunk, and no multiple of it.
    data = row_sums.table(2300, 7)
    exact = [math.fsum(x * x for x in row) for row in data.tolist()]
    np.testing.assert_allclose(WAYS[name](data), exact, rtol=1e-12)


def test_a_table_is_the_same_for_the_same_seed():
    np.testing.assert_array_equal(row_sums.table(5, 3), row_sums.table(5, 3))
    assert row_sums.table(5, 3).shape == (5, 3)
