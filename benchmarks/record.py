"""Record what the notebooks ask, for a class that has no machine to run them on.

Run from a checkout, on an idle machine:
``python benchmarks/record.py [NAME ...] [--budget 28] [--out FOLDER]``.
Every question that a notebook's code cells ask is asked here, one after another, and
its answer goes into a file of its own. What is there already stays, unless it is named.
``PERFKIT_REPLAY=1`` then shows what lies in ``perfkit/replays``, where it goes unless
told otherwise.
"""

import argparse
import ast
import contextlib
import importlib.util
import linecache
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat

import perfkit
from perfkit.findings import store
from perfkit.findings.account import Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.standing import measurement
from perfkit.questions import question_of
from perfkit.questions.base import parameters_of
from perfkit.questions.replay import BROUGHT
from perfkit.questions.shared import keras, tf
from perfkit.training.diagnose.maker import maker
from perfkit.training.diagnose.verdict import verdict_of
from perfkit.training.race.ladder import is_unchanged, training_as_found
from perfkit.training.race.race import is_unwritten

NOTEBOOKS = sorted(Path(__file__).resolve().parents[1].glob("notebooks/*.ipynb"))
ASKING = tuple(
    f"perfkit.{verb}"
    for verb in ("run", "panel", "diagnose", "race", "profile", "lines", "ladder")
)
# Seconds: a diagnosis has more to tell apart, a race one thing for each of its sides.
BUDGET_S, MORE, RACE_S = 28.0, 2.0, 90.0


def lazily(name):
    """A module beside the notebooks, which is loaded where somebody uses it."""
    spec = importlib.util.spec_from_file_location(
        name, NOTEBOOKS[0].with_name(f"{name}.py")
    )
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Nothing of them is used here, so they need not be loaded.
UNUSED = {"keras": keras, "tf": tf, "parts": lazily("parts")}


@dataclass(frozen=True)
class Asked:
    """A race, a profile, an account or a rung of the ladder that a notebook asks for.

    Attributes:
        verb: Of perfkit, by its name.
        trainings: Functions, or the file of a script.
        given: What the verb is given besides.
    """

    verb: str
    trainings: tuple
    given: dict = field(default_factory=dict)

    def run(self, **how):
        """Ask this machine, beside the notebooks."""
        home = NOTEBOOKS[0].parent
        # As in a kernel, where modules beside the notebook are found first.
        sys.path[0] = str(home)
        with contextlib.chdir(home):
            return getattr(perfkit, self.verb)(*self.trainings, **self.given, **how)

    @property
    def words(self):
        """What it is, for the name of a file."""
        makers = [getattr(m, "__name__", Path(str(m)).stem) for m in self.trainings]
        given = (f"{name} {value}" for name, value in self.given.items())
        return [self.verb, *makers, *given]


def asked(notebook):
    """What the cells of a notebook ask: experiments, functions to diagnose, races."""
    names = {"__name__": "__main__"} | UNUSED
    for number, source in enumerate(code_of(notebook)):
        # As in a kernel, where the code of a function is read.
        file = f"<{notebook.stem} {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        for node in ast.parse(source).body:
            calls = [call for call in ast.walk(node) if _asks(call)]
            for call in calls:
                names["_asked"] = _HEARD.get(ast.unparse(call.func), _asked)
                call.func = ast.copy_location(ast.Name("_asked", ast.Load()), call)
                what = eval(compile(ast.Expression(call), file, "eval"), names)
                if what is not None:
                    yield what
            if not calls and _makes_no_use_of_results(node):
                exec(compile(ast.Module([node], []), file, "exec"), names)


def code_of(notebook):
    """The sources of a notebook's code cells."""
    cells = nbformat.read(notebook, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def _asks(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ASKING


def _makes_no_use_of_results(node):
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant | ast.Dict | ast.List)
    if isinstance(node, ast.Import):
        return not any((one.asname or one.name) in UNUSED for one in node.names)
    return isinstance(node, ast.ImportFrom | ast.FunctionDef)


def _asked(what, guess="", mine=None, **parameters):
    # One that takes a function of the reader's is recorded without it.
    if isinstance(what, str):
        return perfkit.experiment(what, **parameters)
    return what


def _raced(*trainings, guess="", python="", **given):
    """A race; None where the reader has yet to write, or to give, something for it."""
    unwritten = any(map(is_unwritten, trainings))
    alone = python or not (given or trainings[1:])
    return None if unwritten or alone else Asked("race", trainings, given)


def _traced(training, **_):
    return Asked("profile", (training,))


def _climbed(training, label):
    """A rung; None where the reader has yet to edit the training."""
    if is_unchanged(maker(training), training_as_found()):
        return None
    return Asked("ladder", (training,), {"label": label})


def _read_by_line(file):
    return Asked("lines", (file,))


_HEARD = {
    "perfkit.race": _raced,
    "perfkit.profile": _traced,
    "perfkit.ladder": _climbed,
    "perfkit.lines": _read_by_line,
}


def questions():
    """Everything that can be replayed, by the name of its file."""
    return {name_of(what): what for one in NOTEBOOKS for what in asked(one)}


def name_of(what):
    """The experiment and what it is set to, or the function of the training."""
    words = ["diagnosis", getattr(what, "__name__", "")]
    if isinstance(what, Asked):
        words = what.words
    if isinstance(what, perfkit.Experiment):
        words = [what.name]
        for one in parameters_of(type(what)):
            if what.parameters[one.name] != one.default:
                words += [one.name, str(what.parameters[one.name])]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def record(what, budget, folder):
    """Ask this machine; the file of a run that is under way lies in ``folder``."""
    if isinstance(what, perfkit.Experiment):
        return perfkit.run(what, budget=budget, folder=folder, replay="")
    if isinstance(what, Asked):
        more = {} if what.verb == "profile" else {"folder": folder}
        more |= {"budget": RACE_S} if what.verb in ("race", "ladder") else {}
        recorded = what.run(replay="", **more)
        return recorded.race if what.verb == "ladder" else recorded
    return perfkit.diagnose(what, budget=MORE * budget, folder=folder, replay="")


def reworded(found):
    """The same measurement with the words, and the lines, that there are for it now."""
    if isinstance(found, Diagnosis):
        return replace(found, verdict=verdict_of(found))
    if found.experiment == "race":
        # What its sides were seen to be is in no file.
        return found
    asked = question_of(found)
    held = measurement(found)
    # A chart shows the rates that the verdict tells.
    found = replace(found, timings=held.timings, code=asked.code)
    return replace(found, verdict=asked.verdict(held))


def main():
    """Record what is asked for, and say what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="of files; all if none"
    )
    parser.add_argument("--budget", type=float, default=BUDGET_S)
    parser.add_argument("--out", type=Path, default=BROUGHT)
    parser.add_argument(
        "--words", action="store_true", help="work out anew what the files there say"
    )
    options = parser.parse_args()
    every = questions()
    if unknown := set(options.names) - set(every):
        parser.error(f"{unknown.pop()} is none of {', '.join(every)}")
    short = []
    for name in options.names or every:
        path = options.out / f"{name}.json"
        if options.words:
            if getattr(every[name], "verb", "") in ("profile", "lines"):
                # They keep numbers alone.
                continue
            store.save(reworded(store.load(path)), path=path)
            continue
        if path.exists() and not options.names:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = record(every[name], options.budget, folder)
        if isinstance(found, Profile | Account):
            store.save(found, path=path)
        elif found.stopped:
            return 130
        elif not found.timings:
            short.append(name)
            continue
        else:
            store.save(found, path=path)
        size, took = path.stat().st_size, time.monotonic() - began
        told = f"{size / 1e3:.0f} kB: {found.report.verdict.headline}"
        print(f"{name}: {took:.0f} s, {told}", flush=True)
    return f"Too short, give them more seconds: {' '.join(short)}" if short else 0


if __name__ == "__main__":
    sys.exit(main())
