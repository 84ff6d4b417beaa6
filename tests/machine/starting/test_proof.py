import dataclasses

import numpy as np
import pytest
from scipy.signal import correlate

from perfkit.machine.starting import child

CONVOLUTION, PRODUCT = child.problems()


def judged(problem, result, device="GPU:0", ran_on="GPU:0", **variables):
    allowed = child.allowed(problem, device, variables)
    return child.judged(problem, device, np.asarray(result), ran_on, allowed)


def rounded(values, digits):
    """Cut off all but so many binary digits, as a GPU's fast units do."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return (bits & np.uint32(2**32 - 2 ** (23 - digits))).view(np.float32)


def computed(problem, digits=23):
    """The problem in float32, its factors with so many digits."""
    left, right = rounded(problem.left, digits), rounded(problem.right, digits)
    if problem.computation == child.PRODUCT:
        return left @ right
    return child.convolved(left, right).astype(np.float32)


def test_the_convolution_is_the_one_that_scipy_computes():
    image, kernel = CONVOLUTION.left[1], CONVOLUTION.right[..., 5]
    known = [
        correlate(image[..., c].astype(float), kernel[..., c].astype(float), "same")
        for c in range(image.shape[2])
    ]
    np.testing.assert_allclose(CONVOLUTION.answer[1, ..., 5], sum(known), atol=1e-12)


def test_no_two_axes_of_a_problem_have_the_same_length():
    shapes = (PRODUCT.answer.shape, CONVOLUTION.answer.shape)
    assert all(len(set(shape)) == len(shape) for shape in shapes)


every_problem = pytest.mark.parametrize("problem", [CONVOLUTION, PRODUCT])


@every_problem
@pytest.mark.parametrize(
    ("device", "digits"), [("CPU:0", 23), ("GPU:0", 23), ("GPU:0", 10)]
)
def test_rounding_alone_is_right(problem, device, digits):
    found = judged(problem, computed(problem, digits), device, device)
    assert found.problem == ""
    assert child.is_right(found)
    assert 0 < found.error < found.allowed


@every_problem
def test_a_processor_that_rounds_as_a_gpu_does_is_wrong_unless_it_was_asked_to(problem):
    result = computed(problem, digits=7)
    asked = {"TF_SET_ONEDNN_FPMATH_MODE": "BF16"}
    assert not child.is_right(judged(problem, result, "CPU:0", "CPU:0"))
    assert child.is_right(judged(problem, result, "CPU:0", "CPU:0", **asked))


def without_the_last_term(problem):
    left = problem.left.copy()
    left[..., -1] = 0
    return computed(dataclasses.replace(problem, left=left))


@pytest.mark.parametrize(
    ("problem", "spoil"),
    [
        (PRODUCT, np.zeros_like),
        (CONVOLUTION, np.zeros_like),
        (PRODUCT, lambda right: 1.05 * right),
        (PRODUCT, lambda right: -right),
        (PRODUCT, lambda right: right[::-1]),
        (PRODUCT, lambda right: np.where(right == right.max(), 0, right)),
        (CONVOLUTION, lambda right: right[:, ::-1]),
        (CONVOLUTION, lambda right: np.roll(right, 1, axis=2)),
        (PRODUCT, lambda right: without_the_last_term(PRODUCT)),
        (CONVOLUTION, lambda right: without_the_last_term(CONVOLUTION)),
    ],
)
def test_a_wrong_result_is_seen_through_the_coarsest_rounding(problem, spoil):
    found = judged(problem, spoil(computed(problem)))
    assert found.error > 2 * found.allowed
    assert not child.is_right(found)


@every_problem
def test_swapped_axes_are_named(problem):
    found = judged(problem, np.swapaxes(computed(problem), 0, 1))
    assert found.error is None
    assert "shape" in found.problem
    assert not child.is_right(found)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_counted(bad):
    result = computed(PRODUCT)
    result[3, 4] = bad
    found = judged(PRODUCT, result)
    assert found.error is None
    assert found.problem == "1 of 49152 numbers of the result are not finite."
