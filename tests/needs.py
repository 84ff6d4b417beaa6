"""Have the browser that some of the chosen tests need, or say what to type.

    python -m tests.needs COMMAND [what pytest is told]

``start.py test`` runs it before the tests; COMMAND is what it was called by.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict

from start import OWN, PYTHON, ROOT, Problem, fail, only_one, run

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLAYWRIGHT = [str(PYTHON), "-m", "playwright"]
FETCH = [*PLAYWRIGHT, "install", "--no-shell", "chromium"]
# A browser that was fetched may lack libraries of the system.
LIBRARIES = [*PLAYWRIGHT, "install-deps", "chromium"]
APT = ["-qy", "-o", "APT::Install-Recommends=false", "-o", "DPkg::Lock::Timeout=60"]
PACKAGE = ["apt-get", "install", *APT, "chromium"]
# Seconds that a download has to begin, and packages to be there.
BEGUN_S, PACKAGES_S = 6, 600
ASK_PLAYWRIGHT = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""


def main(again: str, *rest: str) -> int:
    """See to it; 0 if the tests can begin."""
    try:
        if needs_browser(list(rest)) and not find_browser():
            fetch_browser()
    except Problem as problem:
        return fail(f"{problem}, then run `{again}` again.", 1)
    except KeyboardInterrupt:
        return 130  # start.py says the rest
    return 0


def fetch_browser() -> None:
    """Fetch one, and as root its libraries or the system's own, or say what to type."""
    OWN.mkdir(exist_ok=True)
    with only_one():
        fetched = tried("Downloading Chromium", FETCH, BEGUN_S)
        command = LIBRARIES if fetched else PACKAGE
        if not find_browser():
            as_root(command)
    if not find_browser():
        by_hand = f"type `sudo {shlex.join(command)}`"
        raise Problem(
            "Some tests need Chromium, which is not here and cannot be fetched; all "
            'others run with `python3 start.py test -- -m "not browser"`, for these '
            + (by_hand if shutil.which("apt-get") else "install it")
        )


def needs_browser(rest: list[str]) -> bool:
    """Whether what pytest is told may select tests that need one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", default="browser")
    options, others = parser.parse_known_args(rest)
    tests, folder = ROOT / "tests", ROOT / "tests" / "browser"
    named = [ROOT / other.split("::")[0] for other in others]
    named = [path for path in named if path.exists() and tests in (path, *path.parents)]
    if named and not any(p == tests or folder in (p, *p.parents) for p in named):
        return False
    with contextlib.suppress(SyntaxError, NameError, TypeError):
        return bool(eval(options.m, {}, defaultdict(bool, browser=True)))
    return True


def find_browser() -> str | None:
    """The system's Chromium or Chrome, else Playwright's own, if it starts.

    One may be a stub, and one that was fetched may lack libraries of the system.
    """
    for path in filter(None, map(shutil.which, BROWSERS)):
        if answers([path, "--version"]):
            return path
    ask = [str(PYTHON), "-c", ASK_PLAYWRIGHT]
    path = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return path if answers([path, "--version"]) else None


def answers(command: list[str]) -> bool:
    """Whether a command succeeds, soon and without a question."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10
        )
        return done.returncode == 0
    return False


def as_root(command: list[str]) -> None:
    """Run a command where that needs no password."""
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (root and not answers([*root, "true"])):
        return
    root += ["env", "DEBIAN_FRONTEND=noninteractive"]
    for each in (["apt-get", "update"], command):
        tried(f"Running `{shlex.join(each)}`", [*root, *each], PACKAGES_S)


def tried(step: str, command: list[str], limit: float) -> bool:
    """Run one step that may fail, since there are others."""
    try:
        run(step, command, None, limit)
    except Problem:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
