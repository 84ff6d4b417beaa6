"""A few steps of a training under TensorFlow's profiler, to explain what was measured.

``course`` says which steps warm up, are timed or are traced, and runs them; ``profile``
has the trace read by xprof and makes records of its tables.
"""
