"""``python -m perfkit`` is the command line."""

import sys

from perfkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
