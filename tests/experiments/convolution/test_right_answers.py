"""Each variant against a convolution that is written out number by number."""

import functools

import numpy as np
import pytest

from perfkit.experiments.convolution import answers
from perfkit.experiments.convolution.problem import Problem, allowed, convolved
from perfkit.experiments.convolution.variants import GROUPS, VARIANTS, own

PROBLEMS = (
    Problem(side=6),
    Problem(batch=2, side=7, channels=4, filters=8, kernel=3),
    Problem(batch=2, side=8, channels=4, filters=4, kernel=4, stride=2),
    Problem(side=9, channels=4, filters=4, kernel=5, stride=3, padding="valid"),
    Problem(batch=3, side=5, channels=4, filters=8, kernel=1),
    Problem(side=6, channels=4, filters=4, kernel=3, stride=2),
)
RIGHT = [name for name in VARIANTS if name not in GROUPS["mistakes"]]
BIG = Problem(batch=2, side=10, channels=4, filters=4)


def by_hand(images, kernel, problem):
    """Sum over every index, where a pixel outside the image is zero."""
    # TensorFlow's rule for "same": as many windows as strides begin in the image.
    total = max((problem.out - 1) * problem.stride + len(kernel) - problem.side, 0)
    shift = total // 2 if problem.padding == "same" else 0
    answer = np.zeros(problem.answer_shape)
    for n, y, x, f in np.ndindex(*answer.shape):
        for i, j, c in np.ndindex(*kernel.shape[:3]):
            row = y * problem.stride + i - shift
            column = x * problem.stride + j - shift
            if 0 <= row < problem.side and 0 <= column < problem.side:
                product = float(images[n, row, column, c]) * float(kernel[i, j, c, f])
                answer[n, y, x, f] += product
    return answer


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_is_the_definition(problem):
    images, kernel = problem.images(3), problem.weights(3)
    found = convolved(images, kernel, problem)
    assert found == pytest.approx(by_hand(images, kernel, problem), abs=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_is_what_tensorflow_means_by_a_convolution(problem):
    import tensorflow as tf

    images, kernel = problem.images(3), problem.weights(3)
    padding = problem.padding.upper()
    found = tf.nn.conv2d(images, kernel, problem.stride, padding)
    wanted = convolved(images, kernel, problem)
    assert found.numpy() == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("name", RIGHT)
def test_every_way_gives_the_right_answer_at_every_size(name):
    method = VARIANTS[name]
    fitting = [problem for problem in PROBLEMS if not method.why_not(problem)]
    assert {p: answers.mistake(method, p) for p in fitting} == dict.fromkeys(
        fitting, ""
    )


CALLED = "def convolve(images, kernel):"
OTHERS = ("conv2d NCHW", "grouped")


@pytest.mark.parametrize(
    "name", [n for n, w in VARIANTS.items() if CALLED in w.code and n not in OTHERS]
)
def test_the_lines_that_are_shown_convolve_as_what_is_measured(name):
    import tensorflow as tf

    images, kernel = BIG.images(1), BIG.weights(1)
    taps = list(np.ndindex(BIG.kernel, BIG.kernel))
    scope = {"tf": tf, "np": np, "images": images, "kernel": kernel, "taps": taps}
    scope |= {"edge": BIG.edge, "reach": BIG.out, "stride": 1, "padding": "SAME"}
    exec(VARIANTS[name].code, scope)
    found = scope["convolve"](scope["images"], scope["kernel"])
    wanted = convolved(images, kernel, BIG)
    assert np.asarray(found, float) == pytest.approx(wanted, abs=0.2)


def test_groups_are_convolved_apart():
    method = VARIANTS["grouped"]
    problem = Problem(side=5, channels=8, filters=4)
    images, kernel = method.arrays(problem, 0)
    answer = method.call(problem)().numpy()
    part = Problem(side=5, channels=2, filters=1)
    for group in range(4):
        channels = slice(2 * group, 2 * group + 2)
        one = by_hand(images[..., channels], kernel[..., group : group + 1], part)
        assert answer[..., group : group + 1] == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("as circulated", "nothing but zeros"),
        ("swapped axes", "it takes the kernel's columns for its rows"),
        ("wrong padding", "wrong answer: off by up to"),
        ("float16 overflow", "of its numbers are too large to hold"),
        ("off-by-one stride", "wrong answer: off by up to"),
    ],
)
@pytest.mark.parametrize("problem", [BIG, Problem(), Problem(side=12, stride=2)])
def test_every_mistake_is_seen_and_said(name, said, problem):
    assert said in answers.mistake(VARIANTS[name], problem)


def of_taps(images, kernel, stride, padding):
    side = kernel.shape[0]
    rows = images.shape[1] - side + 1
    return sum(
        images[:, y : y + rows, x : x + rows] @ kernel[y, x]
        for y in range(side)
        for x in range(side)
    )


VALID = Problem(batch=2, side=10, channels=3, filters=4, padding="valid")


def mirrored(images, kernel, stride, padding):
    return convolved(images, kernel[::-1, ::-1], VALID)


@functools.cache
def kept():
    return convolved(VALID.images(), VALID.weights(), VALID).astype(np.float32)


def changed(change):
    return lambda *given: change(of_taps(*given))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (changed(lambda _: None), "still to be written"),
        (changed(lambda answer: answer[:, 1:]), "shape (2, 7, 8, 4) instead of (2, 8,"),
        (changed(lambda answer: answer.astype(np.float16)), "off by up to"),
        (changed(lambda answer: answer + 1e-3), "off by up to 0.001"),
        (changed(lambda answer: answer * np.nan), "too large to hold"),
        (mirrored, "it mirrors the kernel"),
        # It is right for the first numbers only.
        (lambda *given: kept(), "off by up to"),
    ],
)
def test_a_function_of_ones_own_that_is_wrong_is_told_how(function, said):
    assert answers.mistake(own(of_taps), VALID) == ""
    assert said in answers.mistake(own(function), VALID)


def test_what_writes_into_its_images_is_stopped():
    def spoil(images, kernel, stride, padding):
        images *= 2

    with pytest.raises(ValueError, match="read-only"):
        answers.mistake(own(spoil), VALID)


def test_an_edge_that_is_wrong_is_looked_for_at_the_edge():
    same = Problem(side=12)

    def repeated_edge(images, kernel, stride, padding):
        around = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
        valid = Problem(side=14, padding="valid")
        return convolved(around, kernel, valid)

    assert "at the edges only" in answers.mistake(own(repeated_edge), same)


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
def test_rounding_is_allowed_and_the_next_shorter_number_is_not(precision):
    shorter = {"float32": np.float16, "float16": _to_bfloat16, "bfloat16": _to_6_bits}
    problem = Problem(batch=2, side=12, channels=16, filters=8)
    images, kernel = problem.images(), problem.weights()
    right = convolved(images, kernel, problem)
    sizes = convolved(abs(images), abs(kernel), problem)
    limit = allowed(float(sizes.max()), problem.taps, precision)
    cut = shorter[precision]
    rounded = convolved(_rounded(images, cut), _rounded(kernel, cut), problem)
    assert abs(rounded - right).max() > limit
    assert abs(right).max() > 4 * limit


def _rounded(array, cut):
    return array.astype(cut) if isinstance(cut, type) else cut(array)


def _to_bfloat16(array):
    import tensorflow as tf

    return array.astype(tf.bfloat16.as_numpy_dtype).astype(np.float32)


def _to_6_bits(array):
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.round(mantissa * 8) / 8, exponent)


def test_the_obvious_work_is_counted():
    problem = Problem(batch=8, side=56, channels=64, filters=64)
    assert problem.flops * 8 == 2 * 8 * 56 * 56 * 64 * 64 * 9
    conv2d, short = VARIANTS["conv2d"], VARIANTS["conv2d bfloat16"]
    images, kernel = 2 * 8 * 56 * 56 * 64, 9 * 64 * 64
    assert conv2d.traffic(problem) * 8 == 4 * (images + kernel)
    assert short.traffic(problem) * 2 == conv2d.traffic(problem)
    assert VARIANTS["depthwise"].flops(problem) * 64 == conv2d.flops(problem)
    assert VARIANTS["grouped"].flops(problem) * 4 == conv2d.flops(problem)
