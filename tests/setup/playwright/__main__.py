"""Download the browser, or bring its libraries."""

import os
import shutil
import sys
from pathlib import Path

machine = Path(os.environ["HOME"])
with (machine / "called").open("a") as called:
    print("playwright", *sys.argv[1:], file=called)
if sys.argv[1] == "install-deps":
    (machine / "libraries are missing").unlink()
elif (machine / "download works").exists():
    print("100% of 1 MiB")
    shutil.copy(machine / "program", machine / "fetched")
else:
    sys.exit("Error: getaddrinfo ENOTFOUND")
