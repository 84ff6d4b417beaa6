"""The command line of an installation that also has the experiment in this folder."""

import signal
import sys
from pathlib import Path

import cloudpickle

import perfkit.questions
from perfkit.cli import main

if __name__ == "__main__":
    # A shell that starts tests in the background has them ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    perfkit.questions.__path__.append(str(Path(__file__).parent))
    from perfkit.questions import napping

    # Trials are forked from a process that does not know this folder.
    cloudpickle.register_pickle_by_value(napping)
    sys.exit(main())
