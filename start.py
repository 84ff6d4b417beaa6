#!/usr/bin/env python3
"""Set perfkit up in this folder and start it.

    python3 start.py           JupyterLab on the first notebook
    python3 start.py setup     the environment only, in .venv/
    python3 start.py test      all tests

    python3 start.py --bundle FOLDER    all that the set-up fetches, for other machines
    python3 start.py --from FOLDER      the set-up from there, without a network

What follows ``--`` goes to pytest, or to ``perfkit lab``. This needs Python
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
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import zipfile
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
BUDGET = ROOT / "budget.txt"
# What only set-up needs: a private uv, and a log of everything uv and pip said.
OWN = ROOT / ".setup"
LOG = OWN / "log.txt"

WINDOWS = os.name == "nt"
# One more whenever a step below changes what it leaves behind.
STEPS = 1
OLDEST, NEWEST = (3, 11), (3, 13)
OLDEST_UV = (0, 5)
# The first that takes `--platform` several times.
OLDEST_PIP = (20, 3)
# TensorFlow's own pair: the plain wheel, and the same wheel with NVIDIA's libraries
# beside it (`tensorflow[and-cuda]`); and its wheel for CPUs alone, half as large, where
# there is one (`tensorflow-cpu`). The number is what the environment takes on disk.
BUILDS = {"cpu": 3e9, "gpu": 8e9, "slim": 2.5e9}

# What a bundle can be for: its system to uv, its Python to uv, and its wheels to pip.
SYSTEMS = {
    f"linux-{arch}": (
        f"{arch}-unknown-linux-gnu",
        f"linux-{arch}-gnu",
        [f"manylinux_2_{glibc}_{arch}" for glibc in range(28, 4, -1)]
        + [f"manylinux2014_{arch}"],
    )
    for arch in ("x86_64", "aarch64")
}
SYSTEMS["macos-arm64"] = (
    "aarch64-apple-darwin",
    "macos-aarch64-none",
    ["macosx_12_0_arm64"],
)
# The first file of a bundle, and the one by which a folder is known as one.
GUIDE = "HOW-TO-INSTALL.txt"
WITHOUT_PYTHON = " (install the Python of that number first)"
SAID_IN_GUIDE = """\
perfkit, for machines without a network

1. Copy the folder of this file, with everything in it, to your own disk.
2. Open a terminal in its folder `perfkit` and type:

       python3 start.py setup --from ..
       .venv/bin/perfkit doctor --workshop
       .venv/bin/perfkit passport -o NAME.json

   The second line says Ready, or names what is missing and what to type. The third
   writes a small file about this machine: send it to the person who gave you this.
3. To begin: python3 start.py

This folder has everything for {}.
Windows takes linux-x86_64, in the terminal of WSL2.
"""

# What this becomes, and the options that come before the user's own.
RUNS = {
    "lab": ("perfkit", ["lab"]),
    "test": ("pytest", ["-n", "auto", "--dist", "worksteal", "--durations", "10"]),
}

PRESS = "press Shift+Enter in its first cell, and again, for the first answer"

# What uv, pip or the system says when it fails, and what to do then.
REMEDIES = {
    r"No module named '?pip": "this Python has no pip and there is no uv; install one "
    "of them, for example with `sudo apt install python3-pip`",
    r"No space left|os error 28\b|quota exceeded|os error 122\b": "the disk is full; "
    "free some space",
    r"Read-only file|Permission denied|os error (13|30)\b": "a file cannot be written; "
    "make this folder and uv's cache writable",
    r"Resource temporarily|Cannot allocate memory|Too many open files": "the system "
    "has no process, memory or open file left for this; close other programs",
    r"network (connectivity )?(is|was) disabled": "the bundle lacks a package of "
    "locks/; work in the folder `perfkit` of the bundle, or make the bundle again",
    r"hash mismatch|DO NOT MATCH THE HASHES": "a download differs from the file in "
    "locks/, so something changed it on the way; try another network",
    r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate": "the network's certificate "
    "is not trusted; name your certificate file in SSL_CERT_FILE",
    r"No interpreter found|No download found": "no Python here fits: TensorFlow needs "
    "3.11 to 3.13, and a bundle exactly the one in its folder's name (3.11 of "
    "linux-x86_64-3.11); install it",
    r"dns error|error sending request|Failed to (fetch|download)|timed out|"
    r"Connection (refused|reset)|resolution|unreachable|"
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
    # What follows "--" is for what this becomes.
    at = arguments.index("--") if "--" in arguments else len(arguments)
    mine, rest = arguments[:at], arguments[at + 1 :]
    again = " ".join(["python3 start.py", *mine])
    options = parse(mine)
    try:
        if WINDOWS:
            raise Problem(
                "TensorFlow and perfkit need Linux or macOS; install WSL2 with "
                "`wsl --install` and open its terminal"
            )
        if options.budget:
            # For `perfkit lab`; a bundle takes it along.
            BUDGET.write_text(f"{options.budget:g}\n")
        if options.bundle:
            bundle(options)
            return 0
        set_up(options.build, options.source, tests=options.what == "test")
        if options.what == "test":
            # What they need beside Python: a browser, a compiler.
            needs = [str(PYTHON), "-m", "tests.needs", again, *rest]
            if code := subprocess.call(needs, cwd=ROOT):
                return code
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
        return fail(f"Set-up was stopped; `{again}` continues from there.", 130)
    print(f"Everything is set up: `python3 start.py` opens a notebook; {PRESS}.")
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read ``[lab|setup|test]`` and the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", default="lab", metavar="lab|setup|test")
    builds = parser.add_mutually_exclusive_group()
    for name in BUILDS:
        text = f"the {name.upper()} build of TensorFlow, whatever the machine has"
        text += ": no code for GPUs, half the size" * (name == "slim")
        builds.add_argument(
            f"--{name}", dest="build", action="store_const", const=name, help=text
        )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="for every run of the notebooks; kept in budget.txt",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FOLDER",
        help="install from this bundle, without a network",
    )
    parser.add_argument(
        "--bundle", type=Path, metavar="FOLDER", help="make a bundle, or continue one"
    )
    parser.add_argument(
        "--for",
        dest="system",
        choices=SYSTEMS,
        default=here(),
        help="the kind of machine (this one's); a bundle may hold several",
    )
    options = parser.parse_args(arguments)
    if options.what not in ("lab", "setup", "test"):
        parser.error(f"{options.what!r} is not one of lab, setup and test")
    if options.budget is not None and not 0 < options.budget < float("inf"):
        parser.error(f"--budget is {options.budget:g}; give seconds above 0")
    return options


def fail(sentence: str, code: int) -> int:
    """Say the one sentence, on a line of its own."""
    print(f"\n{sentence}", file=sys.stderr)
    return code


def set_up(asked: str | None, source: Path | None = None, *, tests: bool) -> None:
    """Bring ``.venv`` to what the locks say; nothing to do is the common case."""
    if source and not asked:
        asked = build_in(source)
    if complete(*choose(asked), tests=tests):
        return
    OWN.mkdir(exist_ok=True)
    with only_one():
        build, done = choose(asked)
        if not complete(build, done, tests=tests):
            kind = held_for_this(source) if source else None
            work(build, done, asked or done.get("asked"), kind, tests=tests)


def complete(build: str, done: dict[str, str | None], *, tests: bool) -> bool:
    """Whether everything that is wanted has been done, from these very files."""
    if tests:
        return done.get("tests") == digest(build, "test")
    return done.get("environment") == digest(build)


def work(
    build: str,
    done: dict[str, str | None],
    asked: str | None,
    kind: Path | None,
    *,
    tests: bool,
) -> None:
    """Do what is missing, and note at the end that it is there."""
    if kind:
        stay_offline(kind)
    uv = find_uv(kind)
    # Scripts in an environment name its place, so one that was moved is made again.
    whole = "environment" in done and done.get("root") == str(ROOT)
    # The slim build is another distribution, of which there can be but one.
    whole = whole and (done["build"] == "slim") == (build == "slim")
    if make_environment(uv, build, kind, whole=whole):
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
        except OSError:
            # A network's file system may have no locks: a set-up that cannot wait for
            # another is better than none.
            pass
        yield


def here() -> str:
    """Which kind of machine this is, as ``SYSTEMS`` calls it."""
    system = "macos" if sys.platform == "darwin" else sys.platform
    return f"{system}-{platform.machine()}"


def build_in(source: Path) -> str:
    """Which build a bundle has the wheels of, for this machine."""
    wheels = source.glob(f"{here()}-3.*/*.whl")
    packages = {path.name.partition("-")[0] for path in wheels}
    if "nvidia_cublas_cu12" in packages:
        return "gpu"
    # Where there is no wheel for CPUs alone, both builds are the same.
    is_slim = "tensorflow_cpu" in packages or "tensorflow" not in packages
    return "slim" if is_slim else "cpu"


def held_for_this(source: Path) -> Path:
    """The folder of a bundle for this machine; its name ends in a Python's version."""
    kinds = sorted(source.resolve().glob(f"{here()}-3.*"))
    if not kinds:
        raise Problem(
            f"{source} holds no bundle for {here()}; give the folder that `python3 "
            f"start.py --bundle FOLDER --for {here()}` made"
        )
    mine = "-{}.{}".format(*sys.version_info)
    return next((kind for kind in kinds if kind.name.endswith(mine)), kinds[-1])


def stay_offline(kind: Path) -> None:
    """Let uv find packages and Python in a bundle, and ask no network."""
    os.environ.update(
        UV_OFFLINE="1",
        # With a cache of earlier set-ups uv may not take what lies in the bundle.
        UV_NO_CACHE="1",
        UV_FIND_LINKS=kind.as_uri(),
        UV_PYTHON_INSTALL_DIR=str(OWN / "python"),
    )
    if (kind / "python.tar.gz").exists():
        (OWN / "python").mkdir(exist_ok=True)
        unpack = ["tar", "-xzf", str(kind / "python.tar.gz"), "-C", str(OWN / "python")]
        run("Unpacking Python", unpack, None)


def bundle(options: argparse.Namespace) -> None:
    """Gather in a folder what the set-up of another machine needs.

    What is there already is not fetched again. Wheels of one version of Python are
    held, and that Python, so that any machine of the kind will do.
    """
    folder, system = options.bundle.resolve(), options.system
    if ROOT in (folder, *folder.parents):
        raise Problem(f"{folder} lies in this folder; give one beside it")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / GUIDE).exists():
        raise Problem(f"{folder} holds something else; give a new folder")
    if system not in SYSTEMS:
        raise Problem(f"TensorFlow has no build for {system}; choose with --for")
    if version_of(sys.executable, "-m", "pip") < OLDEST_PIP:
        raise Problem(
            "A bundle needs pip 20.3 or newer for this Python; install it, for example "
            "with `sudo apt install python3-pip`, or update it with `python3 -m pip "
            "install --upgrade pip`"
        )
    python = "{}.{}".format(*(sys.version_info if suits() else NEWEST))
    kind = folder / f"{system}-{python}"
    kind.mkdir(parents=True, exist_ok=True)
    (folder / GUIDE).touch()
    OWN.mkdir(exist_ok=True)
    with only_one():
        uv = find_uv()
        fetch(uv, options.build or "slim", system, python, kind)
        carries = (kind / "python.tar.gz").exists() or fetch_python(
            uv, f"cpython-{python}-{SYSTEMS[system][1]}", kind / "python.tar.gz"
        )
    copy_checkout(folder / "perfkit")
    kinds = [
        f"{path.name}{'' if (path / 'python.tar.gz').exists() else WITHOUT_PYTHON}"
        for path in sorted(folder.glob("*-3.*"))
    ]
    (folder / GUIDE).write_text(SAID_IN_GUIDE.format("; ".join(kinds)))
    if not carries:
        print(f"It has no Python: each machine needs its own Python {python}.")
    size = sum(path.stat().st_size for path in kind.iterdir())
    print(f"{kind} is ready: {size / 1e6:.0f} MB. {folder / GUIDE} says how to use it.")


def fetch(uv: str, build: str, system: str, python: str, kind: Path) -> None:
    """Download the wheels that a lock names for a system, and uv's.

    pip takes a lock's conditions to be about the machine it runs on; uv applies those
    of another.
    """
    chosen = OWN / "bundle.txt"
    triple, _, tags = SYSTEMS[system]
    locks = [str(LOCKS / f"{name}.txt") for name in (build, "uv")]
    about = ["--python-platform", triple, "--python-version", python]
    command = [uv, "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
    choose = [*command, *about, "--output-file", str(chosen), *locks]
    run(f"Choosing the packages for {system}", choose, uv_settings())
    wanted = ["--no-deps", "--only-binary", ":all:", "--python-version", python]
    wanted += [word for tag in tags for word in ("--platform", tag)]
    files = ["--requirement", str(chosen), "--dest", str(kind)]
    pip("Fetching them", "download", *wanted, *files)


def fetch_python(uv: str, request: str, archive: Path) -> bool:
    """Pack a Python that runs from any place; whether there is one to be had."""
    place, packed = OWN / "bundled-python", archive.with_suffix(".part")
    shutil.rmtree(place, ignore_errors=True)
    apart = {"UV_PYTHON_INSTALL_DIR": str(place), "UV_PYTHON_INSTALL_BIN": "0"}
    try:
        fetching = [uv, "python", "install", request]
        run("Fetching Python", fetching, {**uv_settings(), **apart})
    except Problem:
        return False
    run("Packing it", ["tar", "-czf", str(packed), "-C", str(place), "."], None)
    packed.replace(archive)
    shutil.rmtree(place)
    return True


def copy_checkout(place: Path) -> None:
    """Copy what lies here, without what git ignores but the class's budget."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    names = [line.rstrip("/") for line in ignored if line and line[0] != "#"]
    names.remove(BUDGET.name)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".git", *names))


def find_uv(kind: Path | None = None) -> str:
    """The machine's uv, else a private one: a bundle's, or one that pip fetches."""
    private = OWN / "uv" / "bin" / "uv"
    for uv in (shutil.which("uv"), str(private)):
        if uv and version_of(uv) >= OLDEST_UV:
            return uv
    shutil.rmtree(OWN / "uv", ignore_errors=True)
    if kind:
        unpack_uv(kind, private)
        return str(private)
    lock = ["--require-hashes", "--requirement", str(LOCKS / "uv.txt")]
    pip("Fetching uv", "install", "--target", str(OWN / "uv"), *lock)
    return str(private)


def pip(step: str, *words: str) -> None:
    """Run this Python's pip, without settings that would contradict the words."""
    free = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    free["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    run(step, [sys.executable, "-m", "pip", *words], free)


def unpack_uv(kind: Path, private: Path) -> None:
    """Take uv out of its wheel: there may be no pip."""
    private.parent.mkdir(parents=True)
    try:
        with zipfile.ZipFile(next(kind.glob("uv-*.whl"))) as wheel:
            names = (n for n in wheel.namelist() if n.endswith("/scripts/uv"))
            private.write_bytes(wheel.read(next(names)))
    except (StopIteration, zipfile.BadZipFile):
        raise Problem(f"{kind} is not complete; make the bundle again") from None
    private.chmod(0o755)


def version_of(*command: str) -> tuple[int, ...]:
    """The version of uv or pip; (0,) where it does not run."""
    with contextlib.suppress(OSError):
        asking = [*command, "--version"]
        answer = subprocess.run(asking, capture_output=True, text=True)
        if found := re.match(r"(?:uv|pip) (\d+)\.(\d+)", answer.stdout):
            return tuple(map(int, found.groups()))
    return (0,)


def make_environment(
    uv: str, build: str, kind: Path | None = None, *, whole: bool
) -> bool:
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
    remove_environment()
    free = shutil.disk_usage(ROOT).free
    if free < BUILDS[build]:
        raise Problem(
            f"The environment takes {BUILDS[build] / 1e9:.1f} GB and the disk has "
            f"{free / 1e9:.1f} GB free; free some space"
        )
    VENV.mkdir()
    ours.touch()
    python, step = sys.executable, "Making .venv"
    if kind:
        python = kind.name.rpartition("-")[2]
    elif not suits():
        python = ">=3.11,<3.14"
        step += f" with another Python (this is {platform.python_version()})"
    command = [uv, "venv", "--allow-existing", "--python", python, str(VENV)]
    run(step, command, uv_settings())
    return True


def remove_environment() -> None:
    """Take ``.venv`` away, and what is left of one whose removal was broken off.

    It is moved first: half of one would be taken for somebody else's, or for whole.
    """
    if os.path.lexists(VENV):
        VENV.replace(Path(tempfile.mkdtemp(prefix="old-", dir=OWN)) / VENV.name)
    for old in OWN.glob("old-*"):
        print("Removing the old environment.", flush=True)
        shutil.rmtree(old, ignore_errors=True)


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


def become(what: str, rest: list[str]) -> NoReturn:
    """Replace this process by JupyterLab or pytest, run with ``.venv``'s Python."""
    module, options = RUNS[what]
    path = [str(VENV / "bin"), *filter(None, [os.environ.get("PATH")])]
    own = {"VIRTUAL_ENV": str(VENV), "PATH": os.pathsep.join(path)}
    settings = {**os.environ, **own}
    if folders := sorted(VENV.glob("lib/*/site-packages/nvidia/*/lib")):
        # Those of the GPU build. TensorFlow 2.21 does not look into all of them by
        # itself, and a library that it does not find costs it the GPU.
        others = filter(None, [os.environ.get("LD_LIBRARY_PATH")])
        searched = [*map(str, folders), *others]
        settings["LD_LIBRARY_PATH"] = os.pathsep.join(searched)
    settings.pop("PYTHONHOME", None)
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execve(PYTHON, [str(PYTHON), "-m", module, *options, *rest], settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
