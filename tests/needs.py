"""Have what the chosen tests need of the machine, or say what to type.

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

# What some tests need of the machine, by the marker that they bear: where they lie,
# what it is called, and the packages that bring it.
NEEDS = {
    "browser": ("tests/browser", "Chromium", ["chromium"]),
    "compiler": ("tests/machine", "a C compiler named cc", ["gcc", "libc6-dev"]),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FETCH = [str(PYTHON), "-m", "playwright", "install", "--no-shell", "chromium"]
ASK_PLAYWRIGHT = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""
APT = ["-qy", "-o", "APT::Install-Recommends=false", "-o", "DPkg::Lock::Timeout=60"]


def main(again: str, *rest: str) -> int:
    """See to it; 0 if the tests can begin."""
    try:
        see_to_needs(list(rest))
    except Problem as problem:
        return fail(f"{problem}, then run `{again}` again.", 1)
    except KeyboardInterrupt:
        return 130  # start.py says the rest
    return 0


def see_to_needs(rest: list[str]) -> None:
    """Have what the chosen tests need of the machine, or say what to type."""
    missing = [need for need in NEEDS if chosen(need, rest) and not has(need)]
    if not missing:
        return
    OWN.mkdir(exist_ok=True)
    with only_one():
        fetched = "browser" in missing and tried("Downloading Chromium", FETCH)
        commands = bringing(missing, fetched=fetched)
        if not (fetched and has("browser") and len(missing) == 1):
            as_root(commands)
    if missing := [need for need in missing if not has(need)]:
        names = " and ".join(NEEDS[need][1] for need in missing)
        others = " and ".join(f"not {need}" for need in missing)
        by_hand = " && ".join(f"sudo {shlex.join(command)}" for command in commands)
        raise Problem(
            f"Some tests need {names}, which is not here and cannot be fetched; all "
            f'others run with `python3 start.py test -- -m "{others}"`, for these '
            + (f"type `{by_hand}`" if shutil.which("apt-get") else "install it")
        )


def chosen(need: str, rest: list[str]) -> bool:
    """Whether what pytest is told may select tests that bear this marker alone."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", default=need)
    options, others = parser.parse_known_args(rest)
    tests, folder = ROOT / "tests", ROOT / NEEDS[need][0]
    named = [ROOT / other.split("::")[0] for other in others]
    named = [path for path in named if path.exists() and tests in (path, *path.parents)]
    if named and not any(p == tests or folder in (p, *p.parents) for p in named):
        return False
    with contextlib.suppress(SyntaxError, NameError, TypeError):
        marked = ({need: True, "measures": measures} for measures in (True, False))
        return any(eval(options.m, {}, defaultdict(bool, marks)) for marks in marked)
    return True


def has(need: str) -> bool:
    """Whether the machine has what these tests need."""
    return bool(find_browser() if need == "browser" else shutil.which("cc"))


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


def bringing(missing: list[str], *, fetched: bool) -> list[list[str]]:
    """The commands that bring what is missing; a fetched browser lacks libraries."""
    commands, rest = [], missing
    if fetched:
        commands.append([str(PYTHON), "-m", "playwright", "install-deps", "chromium"])
        rest = [need for need in missing if need != "browser"]
    if packages := [package for need in rest for package in NEEDS[need][2]]:
        commands.append(["apt-get", "install", *packages])
    return commands


def as_root(commands: list[list[str]]) -> None:
    """Run commands where that needs no password."""
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (root and not answers([*root, "true"])):
        return
    root += ["env", "DEBIAN_FRONTEND=noninteractive"]
    for command in (["apt-get", "update"], *commands):
        options = APT if command[0] == "apt-get" else []
        step = f"Running `{shlex.join(command)}`"
        tried(step, [*root, *command, *options])


def tried(step: str, command: list[str]) -> bool:
    """Run one step that may fail, since there are others."""
    try:
        run(step, command, None)
    except Problem:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
