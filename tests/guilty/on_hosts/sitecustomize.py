"""Python on the hosts of a fleet: no TensorFlow, and the experiment of the tests."""

from pathlib import Path

import perfkit.questions

GUILTY = Path(__file__).parents[1]
exec((GUILTY / "without_tensorflow/sitecustomize.py").read_text())
perfkit.questions.__path__.append(str(GUILTY))
