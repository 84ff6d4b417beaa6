"""Where its browser would be."""

import contextlib
import os
from types import SimpleNamespace


@contextlib.contextmanager
def sync_playwright():
    path = os.path.join(os.environ["HOME"], "fetched")
    yield SimpleNamespace(chromium=SimpleNamespace(executable_path=path))
