import itertools

import numpy as np
import pytest
import tensorflow as tf

from perfkit.questions.convolution import variants
from perfkit.questions.convolution.variants import (
    VARIANTS,
    Problem,
    allowed,
    convolved,
    mistake,
    own_method,
    try_method,
)

PROBLEMS = (
    Problem(batch=2, side=7, channels=4, filters=8, kernel=3),
    Problem(batch=2, side=8, channels=4, filters=4, kernel=4, stride=2),
    Problem(side=9, channels=4, filters=4, kernel=5, stride=3, padding="valid"),
    Problem(batch=3, side=5, channels=4, filters=8, kernel=1),
)
RIGHT = [name for name in VARIANTS if name != "as circulated"]
BIG = Problem(batch=2, side=10, channels=4, filters=4)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_is_what_tensorflow_means_by_a_convolution(problem):
    images, kernel = problem.images(3), problem.weights(3)
    meant = tf.nn.conv2d(images, kernel, problem.stride, problem.padding.upper())
    assert convolved(images, kernel, problem) == pytest.approx(meant.numpy(), abs=1e-4)


@pytest.mark.parametrize("name", RIGHT)
def test_every_way_gives_the_right_answer_at_every_size(name):
    wrong = {problem: mistake(VARIANTS[name], problem) for problem in PROBLEMS}
    assert wrong == dict.fromkeys(PROBLEMS, "")


@pytest.mark.parametrize(
    "name", [n for n in RIGHT if "def convolve(images, kernel):" in VARIANTS[n].code]
)
def test_the_lines_that_are_shown_convolve_as_what_is_measured(name):
    images, kernel = BIG.images(1), BIG.weights(1)
    scope = {"tf": tf, "images": images, "kernel": kernel}
    scope |= {"stride": 1, "padding": "SAME"}
    exec(VARIANTS[name].code, scope)
    answer = scope["convolve"](scope["images"], scope["kernel"])
    right = convolved(images, kernel, BIG)
    assert np.asarray(answer, float) == pytest.approx(right, abs=0.2)


def of_taps(images, kernel, stride, padding):
    side = kernel.shape[0]
    rows = images.shape[1] - side + 1
    return sum(
        images[:, y : y + rows, x : x + rows] @ kernel[y, x]
        for y in range(side)
        for x in range(side)
    )


VALID = Problem(batch=2, side=10, channels=3, filters=4, padding="valid")
FIRST = convolved(VALID.images(), VALID.weights(), VALID).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: None, "write its function first"),
        (lambda answer: answer[:, 1:], "shape (2, 7, 8, 4) instead of (2, 8,"),
        (lambda answer: answer + 1e-3, "off by up to 0.001"),
        (lambda answer: answer * np.nan, "overflow"),
        (lambda answer: 0 * answer, "nothing but zeros"),
        # Its images are moved by a pixel.
        (lambda answer: np.roll(answer, 1, axis=2), "off by up to"),
        # It is right for the first numbers only.
        (lambda _: FIRST, "off by up to"),
    ],
)
def test_a_function_of_ones_own_that_is_wrong_is_told_how(change, said):
    assert mistake(own_method(of_taps), VALID) == ""
    assert said in mistake(own_method(lambda *given: change(of_taps(*given))), VALID)


def test_what_writes_into_its_images_is_stopped():
    def spoil(images, kernel, stride, padding):
        images *= 2

    with pytest.raises(ValueError, match="read-only"):
        mistake(own_method(spoil), VALID)


def _to_bfloat16(array):
    return array.astype(tf.bfloat16.as_numpy_dtype).astype(np.float32)


@pytest.mark.parametrize(
    ("precision", "cut"), [("float32", np.float16), ("tf32", _to_bfloat16)]
)
def test_rounding_is_allowed_and_the_next_shorter_number_is_not(precision, cut):
    problem = Problem(batch=2, side=12, channels=16, filters=8)
    images, kernel = problem.images(), problem.weights()
    right = convolved(images, kernel, problem)
    sizes = convolved(abs(images), abs(kernel), problem)
    limit = allowed(float(sizes.max()), problem.taps, precision)
    assert abs(convolved(cut(images), cut(kernel), problem) - right).max() > limit
    assert abs(right).max() > 4 * limit


def test_the_obvious_work_is_counted():
    problem = Problem(batch=8, side=56, channels=64, filters=64)
    assert problem.flops * 8 == 2 * 8 * 56 * 56 * 64 * 64 * 9
    images, kernel = 2 * 8 * 56 * 56 * 64, 9 * 64 * 64
    assert problem.traffic * 8 == 4 * (images + kernel)


SMALL = Problem(side=8)


def test_a_call_is_foretold_from_how_it_grows_and_not_where_it_does_not(monkeypatch):
    def costs(seconds):
        monkeypatch.setattr(variants, "call_s", lambda _, problem: seconds(problem))

    costs(lambda problem: 1e-4 + 1e-7 * problem.batch * problem.flops)
    asked = Problem(batch=2, side=64, channels=8, filters=8)
    why = try_method(VARIANTS["python loops"], asked, 0.3).why_not
    wanted = 1e-7 * 2 * 64 * 64 * 8 * 8 * 9 * 2
    assert f"about {1000 * wanted:.0f} ms" in why
    costs(lambda problem: 0.01)
    assert try_method(own_method(of_taps), VALID, 0.3).why_not == ""
    costs(lambda problem: 1.5)
    assert "about 1.5 s a call" in try_method(VARIANTS["numpy taps"], SMALL).why_not
    # Not where the baseline takes as long.
    assert try_method(VARIANTS["numpy taps"], SMALL, 2.0).why_not == ""


def test_what_cannot_be_tried_says_why(monkeypatch):
    def broken(images, kernel, stride, padding):
        raise ValueError("no such axis\nand more")

    raised = try_method(own_method(broken), SMALL).why_not
    assert raised == "raised ValueError: no such axis"
    huge = Problem(batch=32, side=112, channels=64, filters=64)
    monkeypatch.setattr(variants, "free_bytes", lambda: 1_000_000)
    why = try_method(VARIANTS["numpy im2col"], huge).why_not
    assert why == "would take 925 MB of memory besides its numbers"


@pytest.mark.parametrize("examples", [0.3, 2.5])
def test_a_limit_counts_whole_examples_and_loses_none(examples):
    calls = []
    ticks = variants.call_endlessly(lambda: calls.append(1), examples)
    counted = [tick.examples for tick in itertools.islice(ticks, 2)]
    assert sum(counted) == pytest.approx(len(calls) * examples, abs=1)
    assert all(isinstance(number, int) for number in counted)
