#!/usr/bin/env python3
"""Set perfkit up in this folder and start it.

    python3 start.py           JupyterLab on the first notebook
    python3 start.py setup     the environment only, in .venv/
    python3 start.py test      all tests

What follows ``--`` goes to pytest, or to ``python -m perfkit.lab``. This needs Python
with pip, or uv, and the network once. A step that fails says why in one sentence, and
the next run goes on from there.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

ROOT = Path(__file__).resolve().parent
LOCKS = ROOT / "locks"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "perfkit.json"
# What only set-up needs: a private uv, and a log of everything uv and pip said.
OWN = ROOT / ".setup"
LOG = OWN / "log.txt"

WINDOWS = os.name == "nt"
# One more whenever a step below changes what it leaves behind.
STEPS = 1
OLDEST, NEWEST = (3, 11), (3, 13)
OLDEST_UV = (0, 5)
# TensorFlow's own pair: the plain wheel, and the same wheel with NVIDIA's libraries
# beside it (`tensorflow[and-cuda]`). The number is what the environment takes on disk.
BUILDS = {"cpu": 3e9, "gpu": 8e9}

# What this becomes, and the options that come before the user's own. Tests run side by
# side on all cores, then those that measure alone: tests/conftest.py.
RUNS = {
    "lab": ("perfkit.lab", []),
    "test": ("pytest", ["-n", "auto", "--dist", "worksteal", "--durations", "10"]),
}

PRESS = "press Shift+Enter in its first cell, and again, for the first answer"

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
# Seconds that a download has to begin, and packages to be there.
BEGUN_S, PACKAGES_S = 6, 600

# What uv, pip or the system says when it fails, and what to do then.
REMEDIES = {
    r"No module named '?pip": "this Python has no pip and there is no uv; install one "
    "of them, for example with `sudo apt install python3-pip`",
    r"No space left|os error 28\b|quota exceeded|os error 122\b": "the disk is full; "
    "free some space",
    r"Read-only file|Permission denied|os error (13|30)\b": "a file cannot be written; "
    "make this folder and uv's cache writable",
    r"hash mismatch|DO NOT MATCH THE HASHES": "a download is not the file that locks/ "
    "names, so something changed it on the way; try another network",
    r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate": "the network's certificate "
    "is not trusted; name your certificate file in SSL_CERT_FILE",
    r"No interpreter found|No download found": "TensorFlow needs Python 3.11 to 3.13 "
    "and none is here; install one, for example with `sudo apt install python3.13`",
    r"dns error|error sending request|Failed to (fetch|download)|timed out|"
    r"Connection (refused|reset)|resolution|unreachable|offline|"
    r"No matching distribution": "the packages cannot be downloaded; connect to the "
    "network, or name its proxy in HTTPS_PROXY",
    r"no wheels with a matching|for the current platform": "TensorFlow or a package "
    f"beside it has no build for {sys.platform} on {platform.machine()}; use Linux, "
    "macOS on Apple silicon or WSL2",
}


class Problem(Exception):
    """One clause: what is in the way, and what to do about it."""


def main(arguments: list[str]) -> int:
    """Set up what is missing, then become JupyterLab or pytest."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    mine, rest = split(arguments)
    again = " ".join(["python3 start.py", *mine])
    options = parse(mine)
    try:
        set_up(options.build, tests=options.what == "test")
        if options.what == "test":
            see_to_needs(rest)
        if options.what == "lab":
            print(f"JupyterLab opens your first notebook: {PRESS}.")
        if options.what != "setup":
            become(options.what, rest)
    except Problem as problem:
        return fail(f"{problem}, then run `{again}` again.", 1)
    except OSError as error:
        reason = explain(str(error), f"{error}; make that possible")
        return fail(f"Set-up stopped: {reason}, then run `{again}` again.", 1)
    except KeyboardInterrupt:
        return fail(f"Set-up was stopped; `{again}` goes on from there.", 130)
    print(f"Everything is set up: `python3 start.py` opens a notebook; {PRESS}.")
    return 0


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Part what is meant for this script from what follows ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read ``[lab|setup|test] [--cpu|--gpu]``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", default="lab", metavar="lab|setup|test")
    builds = parser.add_mutually_exclusive_group()
    for name in BUILDS:
        text = f"the {name.upper()} build of TensorFlow, whatever the machine has"
        builds.add_argument(
            f"--{name}", dest="build", action="store_const", const=name, help=text
        )
    options = parser.parse_args(arguments)
    if options.what not in ("lab", "setup", "test"):
        parser.error(f"{options.what!r} is none of lab, setup and test")
    return options


def fail(sentence: str, code: int) -> int:
    """Say the one sentence, on a line of its own."""
    print(f"\n{sentence}", file=sys.stderr)
    return code


def set_up(asked: str | None, *, tests: bool) -> None:
    """Bring ``.venv`` to what the locks say; nothing to do is the common case."""
    if WINDOWS:
        raise Problem(
            "TensorFlow and this kit need Linux or macOS; install WSL2 with "
            "`wsl --install` and open its terminal"
        )
    if complete(*choose(asked), tests=tests):
        return
    OWN.mkdir(exist_ok=True)
    with only_one():
        build, done = choose(asked)
        if not complete(build, done, tests=tests):
            work(build, done, asked or done.get("asked"), tests=tests)


def complete(build: str, done: dict[str, str | None], *, tests: bool) -> bool:
    """Whether everything that is wanted has been done, from these very files."""
    if tests:
        return done.get("tests") == digest(build, "test")
    return done.get("environment") == digest(build)


def work(
    build: str, done: dict[str, str | None], asked: str | None, *, tests: bool
) -> None:
    """Do what is missing, and note at the end that it is there."""
    uv = find_uv()
    # Scripts in an environment name its place, so one that was moved is made again.
    whole = "environment" in done and done.get("root") == str(ROOT)
    if make_environment(uv, build, whole=whole):
        done = {}
    now = {"build": build, "asked": asked, "root": str(ROOT)}
    record(now)
    if done.get("environment") != digest(build):
        install(uv, build)
    if tests:
        add(uv, "test", "Installing what the tests need")
        now["tests"] = digest(build, "test")
    record({**now, "environment": digest(build)})


def choose(asked: str | None) -> tuple[str, dict[str, str | None]]:
    """Which build it is to be, and what has been done so far.

    What was asked for once stays. A GPU build stays one without asking the driver
    again, which may take a second.
    """
    done = {}
    if usable():
        with contextlib.suppress(OSError, ValueError):
            done = json.loads(STAMP.read_text())
    if build := asked or done.get("asked"):
        return build, done
    gpu = done.get("build") == "gpu" or nvidia_driver_answers()
    return "gpu" if gpu else "cpu", done


def nvidia_driver_answers() -> bool:
    """Whether NVIDIA's management library is here and finds its driver."""
    for name in ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"):
        with contextlib.suppress(OSError, AttributeError):
            return bool(ctypes.CDLL(name).nvmlInit_v2() == 0)
    return False


def digest(build: str, *more: str) -> str:
    """Everything the environment follows from, as one number."""
    state = hashlib.sha256(f"{STEPS} {ROOT} {build}".encode())
    files = [VENV / "pyvenv.cfg", ROOT / "pyproject.toml"]
    for path in [*files, *(LOCKS / f"{name}.txt" for name in (build, *more))]:
        state.update(path.read_bytes() if path.exists() else b"none")
    return state.hexdigest()


def record(done: dict[str, str | None]) -> None:
    """Write down what is complete; without "environment", a step is under way."""
    draft = STAMP.with_suffix(".new")
    draft.write_text(json.dumps(done))
    draft.replace(STAMP)


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Wait for another set-up in this folder to end."""
    import fcntl  # there is none on Windows

    with (OWN / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up in this folder.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_uv() -> str:
    """The machine's uv, else a private one that pip fetches."""
    private = OWN / "uv" / "bin" / "uv"
    for uv in (shutil.which("uv"), str(private)):
        if uv and version_of(uv) >= OLDEST_UV:
            return uv
    shutil.rmtree(OWN / "uv", ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    lock = ["--require-hashes", "--requirement", str(LOCKS / "uv.txt")]
    # Settings that would contradict --target.
    free = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    run("Fetching uv", [*pip, "--target", str(OWN / "uv"), *lock], free)
    return str(private)


def version_of(uv: str) -> tuple[int, ...]:
    """The version of an executable; (0,) where it does not run."""
    with contextlib.suppress(OSError):
        answer = subprocess.run([uv, "--version"], capture_output=True, text=True)
        if found := re.match(r"uv (\d+)\.(\d+)", answer.stdout):
            return tuple(map(int, found.groups()))
    return (0,)


def make_environment(uv: str, build: str, *, whole: bool) -> bool:
    """Make ``.venv`` anew unless it works; tell whether it was made.

    One whose installation was broken off is not to be trusted: a package may be half
    there. Its downloads are in uv's cache, so making it again takes little.
    """
    ours = VENV / "made-by-start.py"
    if usable() and (whole or not ours.exists()):
        return False
    if os.path.lexists(VENV) and not ours.exists():
        raise Problem(
            f"{VENV} does not work here and was not made by this script; move it away"
        )
    shutil.rmtree(VENV, ignore_errors=True)
    free = shutil.disk_usage(ROOT).free
    if free < BUILDS[build]:
        raise Problem(
            f"The environment takes {BUILDS[build] / 1e9:.1f} GB and the disk has "
            f"{free / 1e9:.1f} GB free; free some space"
        )
    VENV.mkdir()
    ours.touch()
    python, step = sys.executable, "Making .venv"
    if not suits():
        python = ">=3.11,<3.14"
        step += f" with another Python (this is {platform.python_version()})"
    command = [uv, "venv", "--allow-existing", "--python", python, str(VENV)]
    run(step, command, uv_settings())
    return True


def usable() -> bool:
    """Whether ``.venv`` holds a Python that runs, in its place and new enough."""
    ask = "import sys; print(sys.version_info[0], sys.version_info[1], sys.prefix)"
    try:
        answer = subprocess.run(
            [PYTHON, "-I", "-c", ask], capture_output=True, text=True
        )
        major, minor, prefix = answer.stdout.strip().split(" ", 2)
    except (OSError, ValueError):
        return False
    return OLDEST <= (int(major), int(minor)) <= NEWEST and Path(prefix) == VENV


def suits() -> bool:
    """Whether TensorFlow has wheels for the Python that runs this."""
    new = OLDEST <= sys.version_info[:2] <= NEWEST
    usual = platform.python_implementation() == "CPython" and sys.maxsize > 2**32
    return new and usual and not sysconfig.get_config_var("Py_GIL_DISABLED")


def install(uv: str, build: str) -> None:
    """Install the locked packages of a build, then perfkit itself as it lies here."""
    add(uv, build, f"Installing TensorFlow ({build.upper()} build) and the rest")
    if build == "cpu" and any(VENV.glob("lib/python*/site-packages/nvidia")):
        extra = sorted(locked("gpu") - locked("cpu"))
        remove = [uv, "pip", "uninstall", "--python", str(PYTHON), *extra]
        run("Removing NVIDIA's libraries", remove, uv_settings())
    perfkit = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    command = [uv, "pip", "install", "--python", str(PYTHON), *perfkit]
    run("Installing perfkit", command, uv_settings())
    compiling = [str(PYTHON), "-m", "compileall", "-q", str(ROOT / "perfkit")]
    run("Compiling", compiling, None)


def add(uv: str, lock: str, step: str) -> None:
    """Install what a lock names, with its hashes checked."""
    command = [uv, "pip", "install", "--python", str(PYTHON), "--compile-bytecode"]
    checked = ["--require-hashes", "--requirement", str(LOCKS / f"{lock}.txt")]
    run(step, [*command, *checked], uv_settings())


def locked(lock: str) -> set[str]:
    """The names of the packages in a lock."""
    text = (LOCKS / f"{lock}.txt").read_text()
    return set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))


@functools.lru_cache(maxsize=None)
def uv_settings() -> dict[str, str]:
    """The environment for uv, with the package index and certificate that pip uses."""
    settings = dict(os.environ)
    pip = [sys.executable, "-m", "pip", "config", "list"]
    said = subprocess.run(pip, capture_output=True, text=True).stdout
    for option, variable in {
        "index-url": "UV_DEFAULT_INDEX",
        "cert": "SSL_CERT_FILE",
    }.items():
        if found := re.findall(rf"^\S+\.{option}='(.+)'$", said, re.MULTILINE):
            settings.setdefault(variable, found[-1])
    return settings


def see_to_needs(rest: list[str]) -> None:
    """Have what the chosen tests need of the machine, or say what to type."""
    missing = [need for need in NEEDS if chosen(need, rest) and not has(need)]
    if not missing:
        return
    OWN.mkdir(exist_ok=True)
    with only_one():
        fetched = "browser" in missing and tried("Downloading Chromium", FETCH, BEGUN_S)
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
        tried(step, [*root, *command, *options], PACKAGES_S)


def tried(step: str, command: list[str], limit: float) -> bool:
    """Run one step that may fail, since there are others."""
    try:
        run(step, command, None, limit)
    except Problem:
        return False
    return True


def run(
    step: str,
    command: list[str],
    settings: dict[str, str] | None,
    limit: float | None = None,
) -> None:
    """Run one step; its output goes to the log, its downloads to the screen.

    It may have a limit in seconds, which ends with the first percentage that it tells.
    """
    print(f"{step}.", flush=True)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=os.setpgrp,
    )
    said = []
    # What it started holds its output open, so all of it is ended.
    end = functools.partial(os.killpg, process.pid, signal.SIGTERM)
    watchdog = threading.Timer(limit or 0, end)
    if limit:
        watchdog.start()
    try:
        with LOG.open("ab") as log:
            for line in process.stdout or ():
                log.write(line)
                said.append(line.decode(errors="replace").strip())
                if said[-1].startswith("Download"):
                    print(f"  {said[-1]}", flush=True)
                if "%" in said[-1]:
                    watchdog.cancel()
        code = process.wait()
    except BaseException:
        end()
        process.wait()
        raise
    finally:
        watchdog.cancel()
    if code:
        last = said[-1].rstrip(".") if said else f"exit code {code}"
        reason = explain("\n".join(said), f"{last}; look into {LOG}")
        raise Problem(f"{step} failed: {reason}")


def explain(text: str, otherwise: str) -> str:
    """Find the remedy for what a program or the system said."""
    for pattern, remedy in REMEDIES.items():
        if re.search(pattern, text, re.IGNORECASE):
            return remedy
    return otherwise


def cuda_folders() -> list[str]:
    """Where the GPU build's libraries lie in the environment; none in the CPU build."""
    return sorted(
        str(folder) for folder in VENV.glob("lib/*/site-packages/nvidia/*/lib")
    )


def become(what: str, rest: list[str]) -> NoReturn:
    """Replace this process by JupyterLab or pytest, run with ``.venv``'s Python."""
    module, options = RUNS[what]
    path = [str(VENV / "bin"), *filter(None, [os.environ.get("PATH")])]
    own = {"VIRTUAL_ENV": str(VENV), "PATH": os.pathsep.join(path)}
    settings = {**os.environ, **own}
    if folders := cuda_folders():
        # TensorFlow 2.21 does not look into all of them by itself, and a library that
        # it does not find costs it the GPU.
        searched = [*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        settings["LD_LIBRARY_PATH"] = os.pathsep.join(searched)
    settings.pop("PYTHONHOME", None)
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execve(PYTHON, [str(PYTHON), "-m", module, *options, *rest], settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
