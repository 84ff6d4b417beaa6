"""Points under roofs whose heights are known, and notes that make no sense."""

import math
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfkit.questions import gallery
from tests.charts.test_any_finding import check
from tests.charts.test_kinds import marks
from tests.findings.made import finding

RATES = {"naive": 1000.0, "fast": 4000.0, "peak": 20_000.0, "memory": 5000.0}
WORK = {name: {"flops": 2e6, "bytes": 1e6} for name in RATES}
WORK |= {"fast": {"flops": 1e6, "bytes": 1e5}}
NOTE = {"work": WORK, "arithmetic": ["peak"], "memory": "memory"}


def drawn(note=NOTE, **more):
    return gallery.chart(finding(RATES, notes={"roofline": note}, **more), "roofline")


def dots(figure):
    return marks(figure, "fill:#0")


def told(figure, variant):
    """A variant's speed, its arithmetic per byte, its share in percent."""
    pattern = rf"{variant} ([\d.]+) GFLOP/s at ([\d.]+) per byte, ([\d.]+) %"
    return tuple(float(number) for number in re.search(pattern, figure.alt).groups())


def test_each_variant_is_told_with_its_speed_its_intensity_and_its_share():
    # 1000 examples of 2 million operations; memory gives 5 GB/s times 2 per byte.
    assert told(drawn(), "naive") == pytest.approx((2, 2, 20), rel=0.08)
    # 4000 of a million; at 10 per byte the level roof of 40 GFLOP/s is the lower.
    assert told(drawn(), "fast") == pytest.approx((4, 10, 10), rel=0.08)
    # It is offered only where both roofs were measured, and else says so.
    without = {name: rate for name, rate in RATES.items() if name != "memory"}
    assert "roofline" not in gallery.kinds(finding(without, notes={"roofline": NOTE}))
    assert "No variant reports its arithmetic" in drawn(None).alt


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*RATES, "flops", "bytes", "in"]), inner)
    ),
    max_leaves=8,
)
entry = st.fixed_dictionaries({"flops": anything, "bytes": anything})
number = st.floats(allow_nan=True) | st.integers()
odd_work = st.fixed_dictionaries({"flops": number, "bytes": number})


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    work=st.dictionaries(st.sampled_from([*RATES]), odd_work | entry) | anything,
    arithmetic=st.just(["peak"]) | anything,
    memory=st.just("memory") | anything,
)
def test_a_note_from_anywhere_is_a_picture(work, arithmetic, memory):
    note = {"work": work, "arithmetic": arithmetic, "memory": memory}
    figure = check(drawn(note))
    assert all(math.isfinite(place) for mark in dots(figure) for place in mark)
