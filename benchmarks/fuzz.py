"""Do any bytes make a reader raise what is no error of perfkit's, or hang?

    .venv/bin/python benchmarks/fuzz.py --minutes 30                 # each reader
    .venv/bin/python benchmarks/fuzz.py --minutes 5 script notebook  # these
    .venv/bin/python benchmarks/fuzz.py --again artifacts/fuzz/script-crash-1a2b

Guided by coverage where Atheris is installed (`pip install atheris`, no part of any
lock): inputs that reach new lines of perfkit's are kept and changed further. Without it
sound files are changed at random. Inputs that break something lie in
``artifacts/fuzz``; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
FOUND = ROOT / "artifacts" / "fuzz"
# Longer ones are slow and tell nothing new; what takes so long hangs.
_LONGEST, _HANGS_S, _MOST_MB = 60_000, 30, 4_000
GUIDED = importlib.util.find_spec("atheris") is not None


def main() -> int:
    """Fuzz each reader in a process of its own."""
    asked = _asked()
    if asked.again:
        return _again(asked.again)
    if asked.alone:
        (name,) = asked.readers
        return (_guided if GUIDED else _at_random)(name, 60 * asked.minutes)
    from tests.hostile.readers import READERS

    FOUND.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in asked.readers or READERS:
        print(f"== {name}", flush=True)
        line = [__file__, "--alone", "--minutes", str(asked.minutes), name]
        failed += [name] * bool(subprocess.call([sys.executable, *line]))
    print(f"Broken: {', '.join(failed)}" if failed else "Nothing was broken.")
    return 1 if failed else 0


def _guided(name: str, seconds: float) -> int:
    """Let Atheris look for inputs; it ends this process itself."""
    import atheris

    with atheris.instrument_imports(include=["perfkit"]):
        from tests.hostile.readers import READERS

    reader = READERS[name]
    corpus = Path(tempfile.mkdtemp(prefix="perfkit-fuzz-"))
    for number, data in enumerate(reader.sound()):
        (corpus / str(number)).write_bytes(data[:_LONGEST])

    def one(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="perfkit-fuzz-") as folder:
            reader(data, Path(folder))

    options = {
        "max_total_time": round(seconds),
        "timeout": _HANGS_S,
        "rss_limit_mb": _MOST_MB,
        "max_len": _LONGEST,
        "artifact_prefix": f"{FOUND}/{_stem(name)}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
    atheris.Fuzz()
    return 0


def _at_random(name: str, seconds: float) -> int:
    """Change sound files until the time is over; print what breaks."""
    from tests.hostile.mutations import bitten
    from tests.hostile.readers import READERS

    reader, sound = READERS[name], READERS[name].sound()
    end, count, slowest, broken = time.monotonic() + seconds, 0, 0.0, 0
    while time.monotonic() < end:
        draw = random.Random(count)
        data = bitten(draw.choice(sound), draw)[:_LONGEST]
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="perfkit-fuzz-") as folder:
            try:
                reader(data, Path(folder))
            # Whatever it is, it is what is looked for.
            except Exception:
                broken += 1
                path = FOUND / f"{_stem(name)}-crash-{count}"
                path.write_bytes(data)
                print(f"{path}:\n{traceback.format_exc(limit=-4)}", flush=True)
        spent, count = time.monotonic() - began, count + 1
        slowest = max(slowest, spent)
    print(f"{count:,} inputs, {broken} broken; the slowest took {slowest:.1f} s")
    return 1 if broken else 0


def _again(path: Path) -> int:
    """Read one input once more, and show what it raises."""
    from tests.hostile.readers import READERS

    name = next(n for n in READERS if path.name.startswith(f"{_stem(n)}-"))
    with tempfile.TemporaryDirectory(prefix="perfkit-fuzz-") as folder:
        print(READERS[name](path.read_bytes(), Path(folder)) or "It was read.")
    return 0


def _stem(name: str) -> str:
    return name.replace(" ", "_")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", help="as tests/hostile/readers.py has it")
    parser.add_argument("--minutes", type=float, default=30.0, help="for each reader")
    parser.add_argument("--again", type=Path, help="an input that broke something")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
