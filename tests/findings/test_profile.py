from tests.training.profile.profiled import profile


def test_the_tracers_cost_is_said():
    made = profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 9 + (0.5,))
    assert "without it they take 10 ms, so the times below are 1.20× as" in repr(made)
    made = profile(at_a_time=8)
    assert "10 executions of 8 steps under TensorFlow's profiler" in repr(made)
