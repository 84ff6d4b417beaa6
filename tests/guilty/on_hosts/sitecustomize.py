"""Python as on the hosts of a fleet: no TensorFlow, and the experiment of the tests."""

import signal
from pathlib import Path

import perfkit.questions

# A shell that starts tests in the background has them ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
GUILTY = Path(__file__).parents[1]
exec((GUILTY / "without_tensorflow/sitecustomize.py").read_text())
perfkit.questions.__path__.append(str(GUILTY))
