"""Does a diagnosis name the planted cause, and does its cure bring what was claimed?

Run from a checkout:
``python benchmarks/diagnosis.py [--only NAME] [--budget 90] [--out rows.jsonl]``.
Every training of ``tests/guilty`` is diagnosed, within what it needs where no budget is
given; scripts lie in its folder ``scripts``, each with the diff that fixes it. Then the
fixed version is measured against it, interleaved, in a run of its own; so is each
opportunity of a healthy one, applied as a user would write it. With ``--diff`` each
patch is raced besides, as ``perfkit diagnose --diff`` does. With ``--out`` each row
is kept as soon as it is known, and what the file holds is not measured again.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import by_hand
from engine import BESIDE

from perfkit.engine.plan import Preparing, TrialStarted
from perfkit.errors import PerfkitError
from perfkit.progress import Display
from perfkit.questions.runs import watch
from perfkit.training.account.causes import CAUSES
from perfkit.training.diagnose.causes.steps import PARTS
from perfkit.training.diagnose.diagnose import DiagnosisSession
from perfkit.training.diagnose.edits import patch
from perfkit.training.diagnose.maker import InFile, maker
from perfkit.training.race.race import open_proof, proof_of

GUILTY = Path(__file__).resolve().parents[1] / "tests" / "guilty"
# What was realised has to lie in the claimed interval, made wider by so much.
WIDER = 0.15
# A defect of a healthy training below this is hardly a false accusation.
ACCUSED = 1.10
LATE = 1.10
WIDTHS = (22, 16, 30, 22, 22, 7, 7, 6)
COLUMNS = ("training", "planted", "named", "claimed", "realised", "inside", "told", "s")


def main():
    """Diagnose, print a row per training and what must hold; fail where it does not."""
    options = asked()
    known = read(options.out)
    rows = []
    print_line(COLUMNS)
    for path in chosen(options):
        with BESIDE[options.beside]():
            row = known.get(name_of(path)) or row_of(path, options)
        if name_of(path) not in known:
            keep(row, options.out)
        rows.append(row)
        show(row)
    held = [print_total(*total) for total in totals(rows)]
    return int(not all(held))


def asked():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="of a file")
    parser.add_argument("--budget", type=float, help="seconds each (what it needs)")
    parser.add_argument(
        "--check", type=float, default=30.0, help="seconds by hand; 0 for none"
    )
    parser.add_argument("--diff", action="store_true", help="race each patch, too")
    parser.add_argument("--beside", choices=BESIDE, default="idle")
    parser.add_argument("--limit", type=int, help="the first so many")
    parser.add_argument("--out", type=Path, help="JSON lines, kept and gone on from")
    return parser.parse_args()


def chosen(options):
    """The files to diagnose, guilty ones first."""
    scripts = GUILTY / "scripts"
    files = [
        *(path for path in sorted(GUILTY.glob("*.py")) if planted(path)),
        *sorted(scripts.glob("*.py")),
        *(p for p in sorted((GUILTY / "healthy").glob("*.py")) if p.stem[0] != "_"),
        *sorted((scripts / "healthy").glob("*.py")),
    ]
    names = options.only
    if unknown := {*(names or ())} - {path.stem for path in files}:
        sys.exit(f"--only: there is no {', '.join(sorted(unknown))} in {GUILTY.name}")
    wanted = [p for p in files if not names or p.stem in names]
    return [p for p in wanted if shown_here(p)][: options.limit]


def shown_here(path):
    """Whether this machine can show what is planted; says why where it cannot."""
    if "scripts" in path.parts:
        return True
    # Each stands alone, and imports TensorFlow in its functions.
    why = runpy.run_path(str(path)).get("unavailable", str)()
    if why:
        print(f"{name_of(path)}: left out, {why}", flush=True)
    return not why


def name_of(path):
    """What a training is called in the table."""
    return str(path.relative_to(GUILTY).with_suffix(""))


def planted(path):
    """The causes of which a file holds one; none for a healthy training."""
    if "scripts" in path.parts:
        diff = path.with_suffix(".diff")
        first = diff.read_text().partition("\n")[0] if diff.is_file() else ""
        return first.removeprefix("cause: ").split(" or ") if first else []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CAUSE":
            return [ast.literal_eval(node.value)]
    return []


def given(path):
    """Make the training as it stands there."""
    return maker(str(path))


def fixed(path, folder):
    """Make the training as it should be; what a script needs for that is in folder."""
    if "scripts" not in path.parts:
        return InFile(str(path), "make_fixed")
    root = GUILTY.parents[1]
    copy = Path(folder) / path.relative_to(root)
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    diff = path.with_suffix(".diff").read_text()
    subprocess.run(
        ["patch", "-p1", "-s"], cwd=folder, input=diff, text=True, check=True
    )
    return maker(str(copy))


# A row.


def row_of(path, options):
    """Diagnose one training and measure by hand what is claimed of it."""
    row = {"training": name_of(path), "planted": planted(path)}
    try:
        found, seconds, told = diagnosed(path, options.budget)
    except PerfkitError as error:
        return row | {"problem": str(error)}
    row |= {
        "seconds": seconds,
        "told": told,
        "step_s": found.facts.get("step_s"),
        "budget": found.budget_s,
        "verdict": found.verdict.headline,
        "noise_floor": found.noise_floor,
        "others": mean(found.samples.get("cpu_other", ())),
        "causes": [plain(cause) for cause in found.causes],
        "profiled": profiled(found),
        "all": {c.variant: [c.ratio, c.low, c.high] for c in found.comparisons},
    }
    if options.diff:
        row["patch"] = proved(path, found)
    checks = list(checks_of(path, found)) if options.check else []
    return row | {"checks": [checked(path, *c, options.check) for c in checks]}


def diagnosed(path, budget):
    """Diagnose it.

    Returns:
        The record, its seconds once it was alone, and those from the end of
        the first step until something was ruled in or out; None where nothing was.
    """
    told = None
    with tempfile.TemporaryDirectory() as folder:
        session = DiagnosisSession(given(path), budget=budget, folder=Path(folder))
        began = time.perf_counter()
        for event in session.events():
            if isinstance(event, Preparing) and event.message.startswith("Waiting"):
                began = time.perf_counter()
            if isinstance(event, TrialStarted):
                at = f"\r{path.stem}: {event.at:4.0f} s of {session.budget:.0f} "
                print(at, end="", file=sys.stderr)
            if told is None and session.finding and tells(session.finding):
                told = time.perf_counter() - began - session.finding.facts["ready_s"]
        return session.finding, time.perf_counter() - began, told


def profiled(found):
    """The cause that the account alone names first; "" where an A/B test leads."""
    swaps = {one.tip.cause: one.swap for one in CAUSES}
    for tip in found.account.tips if found.account else ():
        if found.verdict.headline == f"{tip.do}.":
            return swaps[tip.cause] or tip.cause
    return ""


def proved(path, found):
    """Whether a race confirms the patch, and its words; None where there is none."""
    made = given(path)
    written = patch(found, made, path.parent)
    if not written.text:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            race = open_proof(written, made, folder=folder)
            proof = proof_of(watch(race, Display()))
        except PerfkitError as error:
            return {"helps": False, "says": str(error)}
    return {"helps": proof.helps, "says": proof.says}


def tells(found):
    """Whether it says what slows the training, or of something that it does not."""
    return bool(found.causes) or any(c.high < ACCUSED for c in found.comparisons)


def checks_of(path, found):
    """What to measure by hand: the fix against its claim, and each opportunity."""
    claims = [c for c in found.causes if c.cause in planted(path)]
    if planted(path):
        named = claims or found.causes
        yield "fix", named[0] if named else None, None
        return
    for cause in found.causes:
        if cause.kind == "opportunity":
            yield cause.change, cause, by_hand.changed(given(path), cause)


def checked(path, what, cause, changed, budget):
    """Measure one change by hand and hold it against what was claimed."""
    check = {"what": what, "claim": plain(cause) if cause else None}
    with tempfile.TemporaryDirectory() as folder:
        changed = fixed(path, folder) if what == "fix" else changed
        if changed is None:
            why = "nobody has written down how to do it by hand"
            return check | {"problem": why}
        try:
            found = by_hand.realised(given(path), changed, budget)
        except PerfkitError as error:
            return check | {"problem": str(error)}
    realised = [found.ratio, found.low, found.high]
    return check | {"realised": realised, "inside": inside(found.ratio, cause)}


def inside(ratio, cause):
    """Whether what was realised lies in the interval that was claimed, made wider."""
    if cause is None:
        return False
    low, high = cause.speedup.low, cause.speedup.high
    if cause.change == PARTS:
        # It is claimed that it brings at least so much.
        high = math.inf
    return low * (1 - WIDER) <= ratio <= high * (1 + WIDER)


def plain(cause):
    """A cause as a row keeps it."""
    gain = cause.speedup
    return {
        "cause": cause.cause,
        "change": cause.change,
        "kind": cause.kind,
        "speedup": [gain.estimate, gain.low, gain.high],
    }


def mean(values):
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# What the rows say.


def named(row):
    """Whether the planted cause comes first, or could as well."""
    causes = row.get("causes", ())
    own = [c["speedup"] for c in causes if c["cause"] in row["planted"]]
    if not own:
        return row.get("profiled", "") in row["planted"]
    best = causes[0]["speedup"]
    return own[0][0] >= best[1] or own[0][2] >= best[0]


def accusations(row):
    """The defects that are claimed of a healthy training, by A/B test or profile."""
    large = (c for c in row.get("causes", ()) if c["speedup"][0] > ACCUSED)
    return [c for c in large if c["kind"] == "defect"]


def in_time(row):
    """Whether the diagnosis kept its budget."""
    return "seconds" in row and row["seconds"] <= LATE * row["budget"]


def totals(rows):
    """What must hold: in words, how often it did, of how many, and the least share."""
    guilty = [row for row in rows if row["planted"]]
    healthy = [row for row in rows if not row["planted"]]
    fixes = [check for row in guilty for check in row.get("checks", ())]
    chances = [check for row in healthy for check in row.get("checks", ())]
    clean = [row for row in healthy if "causes" in row and not accusations(row)]
    clean = [row for row in clean if not row.get("profiled")]
    yield "planted cause first, or equal", sum(map(named, guilty)), len(guilty), 0.95
    yield "fix as fast as claimed", good(fixes), len(guilty), 0.9
    yield "healthy without a defect", len(clean), len(healthy), 1.0
    yield "opportunities as claimed", good(chances), len(chances), 0.9
    yield "within the budget", sum(map(in_time, rows)), len(rows), 1.0
    if patches := [row["patch"] for row in guilty if row.get("patch")]:
        confirmed = sum(one["helps"] for one in patches)
        yield "patches that a race confirms", confirmed, len(patches), 0.95


def good(checks):
    """How many changes brought by hand what was claimed."""
    return sum(check.get("inside", False) for check in checks)


# Shown and kept.


def show(row):
    """Print what is known of one training, and each thing done by hand."""
    print("\r", end="", file=sys.stderr)
    top = row.get("causes", ())[:1]
    first = f"{top[0]['cause']} ({top[0]['change']})" if top else "nothing"
    if row.get("profiled"):
        first = f"{row['profiled']} (profiled)"
    mark = "" if not row["planted"] else "+ " if named(row) else "- "
    claim = in_text(top[0]["speedup"]) if top else ""
    checks = row.get("checks", ())
    fix = checks[0] if checks and row["planted"] else {}
    told, seconds = (f"{row.get(key) or 0:.0f}" for key in ("told", "seconds"))
    own = fix["claim"]["speedup"] if fix.get("claim") else None
    print_line(
        (
            *(row["training"], " or ".join(row["planted"]), mark + first),
            *(in_text(own) if own else claim, *by_hand_of(fix), told, seconds),
        )
    )
    for check in checks if not row["planted"] else ():
        claimed = in_text(check["claim"]["speedup"])
        print_line(("", "", f"  {check['what']}", claimed, *by_hand_of(check), "", ""))
    if row.get("patch"):
        print(f"  {row['patch']['says']}")
    for cause in accusations(row) if not row["planted"] else ():
        print(f"  FALSELY ACCUSED: {cause['cause']} {in_text(cause['speedup'])}")
    if row.get("profiled") and not row["planted"]:
        print(f"  FALSELY ACCUSED: {row['profiled']} (profiled)")
    for problem in filter(None, (one.get("problem") for one in (row, *checks))):
        print(f"  {problem}")


def by_hand_of(check):
    """What was realised, and whether that was claimed."""
    if "realised" not in check:
        return "", ""
    return in_text(check["realised"]), "yes" if check["inside"] else "NO"


def in_text(gain):
    """A gain and its interval."""
    return "{:.2f}x ({:.2f}-{:.2f})".format(*gain)


def print_line(texts):
    """Print a line of the table."""
    pairs = zip(texts, WIDTHS, strict=True)
    print("".join(f"{text[: width - 1]:{width}}" for text, width in pairs), flush=True)


def print_total(what, held, of, share):
    """Print how often something held that must; True where it did often enough."""
    least = -int(-share * of // 1)
    enough = held >= least
    print(f"{what:32} {held} of {of}, at least {least}{'' if enough else '  MISSED'}")
    return enough


def read(path):
    """The rows that an earlier call kept, by training."""
    if path is None or not path.is_file():
        return {}
    rows = map(json.loads, path.read_text().splitlines())
    return {row["training"]: row for row in rows if "problem" not in row}


def keep(row, path):
    """Keep a row at once: what follows may be interrupted."""
    if path is not None:
        with path.open("a") as file:
            print(json.dumps(row), file=file)


if __name__ == "__main__":
    sys.exit(main())
