"""A few steps of a training under TensorFlow's profiler, to explain what was measured.

``course`` says which steps warm up, are timed or are traced, ``stepping`` runs them,
``tools`` has the trace read by xprof, ``understood`` makes records of its tables.
"""
