"""Does an account put the seconds on the line at fault, and leave healthy ones alone?

Run from a checkout:
``python benchmarks/account.py FOLDER ... [--budget 30] [--only NAME] [--out FILE]
[--like FILE]``; with ``--like`` the shares are held against those of an earlier run.

Each script of a folder (``NAME.py``, ``NAME.ipynb``, or ``NAME/train.py``) says in its
first lines ``# lines: 41-47, helpers.py:12``: where a colleague would point, written
before the run. One whose first line says ``# cause: none`` is healthy, and one without
such lines only has to be accounted for.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import time
from pathlib import Path

from perfkit.errors import PerfkitError
from perfkit.progress import Display
from perfkit.questions.runs import watch
from perfkit.training.account.session import open_lines

CASES = Path(__file__).parent / "cases"
# Two accounts of one script may differ by so much.
POINTS = 0.05
WIDTHS = (34, 22, 7, 6, 6, 8, 9, 6)
COLUMNS = (
    "training",
    "first hot line",
    "right",
    "share",
    "else",
    "looking",
    "tip",
    "s",
)


def main():
    """Account for each script, print a row for it and what must hold."""
    options = asked()
    rows, known = [], read(options.out)
    print_row(COLUMNS)
    for path in scripts(options):
        name = name_of(path)
        row = known.get(name) or row_of(path, options)
        if name not in known and options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        rows.append(row)
        show(row)
    held = [print_total(*total) for total in totals(rows)]
    if options.like:
        held.append(print_total(*alike(rows, read(options.like))))
    return int(not all(held))


def asked():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[CASES])
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument("--out", type=Path, help="JSON lines, kept and gone on from")
    parser.add_argument("--like", type=Path, help="what --out of another run left")
    parser.add_argument("--save", type=Path, help="a folder for the accounts")
    return parser.parse_args()


def scripts(options):
    """The scripts of the folders, without their fixes."""
    for folder in options.folders:
        folder = folder.resolve()
        single = [p for p in folder.iterdir() if p.suffix in (".py", ".ipynb")]
        nested = folder.glob("*/train.py")
        for path in sorted([*single, *nested]):
            if ".fixed" in str(path) or path.name == "standins.py":
                continue
            if not options.only or any(one in str(path) for one in options.only):
                yield path


def name_of(path):
    """What a script is called."""
    return path.parent.name if path.name == "train.py" else path.name


def header(path):
    """The first lines of a script, without their marks."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["source"]]
        text = "\n".join("".join(c["source"]) for c in cells[:3])
    return "\n".join(re.findall(r"^#+ ?(.*)$", text, re.MULTILINE)[:30])


def accepted(path):
    """Places at fault: file, cell, and first and last line."""
    found = re.search(r"^lines:(.*?)(?=^\w+:|\Z)", header(path), re.M | re.S)
    places, file, cell = set(), "", 0
    for file_, cell_, first, last in re.findall(
        r"(?:([\w./]+\.py)\s*:\s*)?(?:cell\s*(\d+)\s*:\s*)?(\d+)(?:\s*-\s*(\d+))?",
        found[1] if found else "",
    ):
        file, cell = file_ or file, int(cell_ or cell)
        places.add((file, cell, int(first), int(last or first)))
    return places


def is_right(line, places, path):
    """Whether the statement at a line has one that was accepted beforehand."""
    last = line.line
    if not line.cell:
        file = path.parent / line.file
        for node in ast.walk(ast.parse(file.read_text())):
            simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
            if simple and node.lineno == line.line:
                last = node.end_lineno
    return any(
        (not file or line.file.endswith(file))
        and line.cell == cell
        and first <= last
        and line.line <= end
        for file, cell, first, end in places
    )


def row_of(path, options):
    """Account for a script in its folder."""
    began, before = time.perf_counter(), os.getcwd()
    os.chdir(path.parent)
    healthy = header(path).startswith("cause: none")
    row = {"name": name_of(path), "healthy": healthy, "places": bool(accepted(path))}
    try:
        session = open_lines(path, options.budget, options.save)
        found = watch(session, Display())
    except PerfkitError as error:
        row |= {"failed": str(error)}
    else:
        row |= told(found, accepted(path), path)
    finally:
        os.chdir(before)
    row["seconds"] = time.perf_counter() - began
    return row


def told(found, places, path):
    """What is kept of an account."""
    lines = [found.lines[tip.lines[0]] for tip in found.tips[:1]] or found.lines[:1]
    hot, shares = (
        found.hot,
        [line for line in found.lines if is_right(line, places, path)],
    )
    return {
        "hot": lines[0].where if lines else "",
        "hottest": found.lines[0].where if found.lines else "",
        "right": bool(lines) and is_right(lines[0], places, path),
        "named": any(is_right(line, places, path) for line in hot),
        "share": sum(found.share(line.total_s) for line in shares),
        "elsewhere": found.share(found.elsewhere_s),
        "on_lines": 1 - found.share(found.elsewhere_s) if found.lines else 0.0,
        "looking": found.looking_s / found.wall_s if found.wall_s else 0.0,
        "traced": found.traced_s / found.wall_s if found.wall_s else 0.0,
        "updates": found.updates,
        "tips": [[tip.cause, round(tip.share, 3)] for tip in found.tips],
        "lines": [[o.where, round(found.share(o.total_s), 3)] for o in found.lines[:8]],
        "error": found.error,
    }


def read(out):
    """Rows that a file holds already."""
    if not out or not out.exists():
        return {}
    rows = (json.loads(line) for line in out.read_text().splitlines())
    return {row["name"]: row for row in rows}


def show(row):
    """Print a row."""
    if "failed" in row:
        print(f"{row['name']:34} {row['failed'][:100]}")
        return
    right = "yes" if row["right"] else "named" if row["named"] else "NO"
    tips = ", ".join(name for name, _ in row["tips"][:2])
    cells = (
        row["name"],
        row["hot"],
        right if row["places"] else "",
        f"{row['share']:.0%}",
        f"{row['elsewhere']:.0%}",
        f"{row['looking']:.0%}",
        tips,
        f"{row['seconds']:.0f}",
    )
    print_row(cells)


def totals(rows):
    """What must hold: a name, how many of how many, and the least share."""
    guilty = [row for row in rows if row["places"] and not row["healthy"]]
    healthy = [row for row in rows if row["healthy"]]
    ran = [row for row in rows if "failed" not in row]
    few = [row for row in ran if row["elsewhere"] <= 0.10 and row["lines"]]
    accused = [row for row in healthy if row.get("tips")]
    yield (
        "the place at fault is the first hot line",
        sum(bool(row.get("right")) for row in guilty),
        len(guilty),
        0.9,
    )
    yield (
        "healthy ones without a word of a defect",
        len(healthy) - len(accused),
        len(healthy),
        1.0,
    )
    yield "run at all", len(ran), len(rows), 1.0
    yield "at most 10 % elsewhere", len(few), len(ran), 0.9


def alike(rows, earlier):
    """Whether the largest five shares of each script are those of the earlier run."""
    both = [
        r for r in rows if r.get("lines") and earlier.get(r["name"], {}).get("lines")
    ]
    apart = {row["name"]: difference(row, earlier[row["name"]]) for row in both}
    for name, points in apart.items():
        if points > POINTS:
            print(f"{name}: {points:.1%} apart")
    near = sum(points <= POINTS for points in apart.values())
    return "alike within 5 points", near, len(both), 1.0


def difference(row, other):
    """By how much the shares of the first five lines of two accounts differ at most."""
    one, two = (dict(account["lines"]) for account in (row, other))
    first = [*[*one][:5], *[*two][:5]]
    return max(abs(one.get(line, 0.0) - two.get(line, 0.0)) for line in first)


def print_total(name, count, of, least):
    """Print what must hold, and whether it does."""
    held = not of or count >= least * of
    print(f"{name}: {count} of {of}{'' if held else f'  (at least {least:.0%})'}")
    return held


def print_row(cells):
    """Print cells in columns."""
    padded = (f"{cell[:w]:{w}}" for cell, w in zip(cells, WIDTHS, strict=True))
    print(" ".join(padded), flush=True)


if __name__ == "__main__":
    sys.exit(main())
