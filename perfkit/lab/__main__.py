"""``python -m perfkit.lab``: JupyterLab on the first notebook of this folder."""

import argparse
import sys
from pathlib import Path

from perfkit.errors import PerfkitError
from perfkit.lab.launch import FIRST_NOTEBOOK, open_lab


def main() -> None:
    """Read the options and become JupyterLab."""
    parser = argparse.ArgumentParser(prog="python -m perfkit.lab", description=__doc__)
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(), help="the folder to show"
    )
    parser.add_argument(
        "--notebook", default=FIRST_NOTEBOOK, help="what is open, relative to it"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address only"
    )
    parser.add_argument("--port", type=int, help="the first one to try (8888)")
    options = parser.parse_args()
    try:
        open_lab(
            options.root,
            notebook=options.notebook,
            browser=not options.no_browser,
            port=options.port,
        )
    except PerfkitError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
