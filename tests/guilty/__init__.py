"""Trainings that are slow for a known reason, and healthy ones.

Each file of this folder that says ``CAUSE`` holds one training:

- ``CAUSE``: the name of the one thing that slows it, such as ``"serial-map"``;
- ``make_training()``: the training with that mistake, as people make it;
- ``make_fixed()``: the same done right by hand, without perfkit.

Both return a compiled model and its data, and if they like a dict of arguments for
``fit``. A file stands alone: it imports nothing of perfkit, makes its own data in about
a second and writes to temporary folders only. Those in ``healthy/`` have
``make_training()`` alone: whoever finds a defect in them is wrong.

``benchmarks/diagnosis.py`` diagnoses them all, whatever lies here.
"""
