"""Every training of the test-bed keeps its frame, and really trains."""

import ast
from pathlib import Path

import pytest

from perfkit.measure.launcher import launcher
from perfkit.measure.trial import Limits

GUILTY = Path(__file__).resolve().parents[1] / "guilty"
# The rows of the table of swaps; no other name is ever given to a cause.
CAUSES = {
    *("input-bound", "serial-map", "no-prefetch", "no-cache", "python-input"),
    *("slow-read", "host-to-device", "eager", "step-overhead", "small-batch"),
    *("retracing", "callback", "validation", "epoch-boundary", "xla", "precision"),
    *("debugging", "threads", "determinism", "float64", "unrolled"),
    *("per-example-map", "late-shuffle", "padding"),
    *("contention", "memory-pressure", "compute-bound"),
}


def files(folder, name):
    """The files of a folder that define a function, or a value, of this name."""
    return sorted(p for p in folder.glob("*.py") if name in defined(p))


def defined(path):
    """What a file defines at its top level: constants by value, functions by node."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found |= {target.id: node.value.value for target in node.targets}
    return found


PLANTED = files(GUILTY, "CAUSE")
HEALTHY = files(GUILTY / "healthy", "make_training")
MADE = [
    *((path, name) for path in PLANTED for name in ("make_training", "make_fixed")),
    *((path, "make_training") for path in HEALTHY),
]


def in_words(value):
    return value.stem if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("path", PLANTED, ids=in_words)
def test_the_planted_cause_has_a_name_that_is_known(path):
    assert defined(path)["CAUSE"] in CAUSES


@pytest.mark.parametrize("path", [*PLANTED, *HEALTHY], ids=in_words)
def test_a_training_stands_alone_and_says_what_it_is(path):
    source = path.read_text()
    assert ast.get_docstring(ast.parse(source))
    # A loop of one's own marks its steps, and knows nothing else of it.
    own = source.replace("import perfkit\n", "").replace("perfkit.steps(", "")
    assert "perfkit" not in own


def test_there_are_healthy_trainings_of_every_kind():
    assert len(HEALTHY) >= 6
    assert all("CAUSE" not in defined(path) for path in HEALTHY)


@pytest.mark.parametrize(("path", "function"), MADE, ids=in_words)
def test_a_training_keeps_the_contract_and_makes_two_steps(path, function):
    notes = told_by(two_steps(str(path), function))
    assert notes["steps"] == 2, notes


def two_steps(path, function):
    """Make a training and take two steps, in a process that knows only this."""

    def work():
        from perfkit.diagnosis.epochs import Epochs, fitted
        from perfkit.diagnosis.looping import Looping
        from perfkit.diagnosis.maker import InFile
        from perfkit.diagnosis.training import handed_over
        from perfkit.measure.tick import Note, Pause, Tick

        # The first step is told by a pause, those after it by ticks.
        looping = Looping(epochs := Epochs(batch=1))

        def making():
            returned = InFile(path, function)()
            return None if looping.training else handed_over(returned)

        ticks = fitted(making, epochs, looping)
        first, second = next(ticks), next(ticks)
        ticks.close()
        yield Note("steps", isinstance(first, Pause) + isinstance(second, Tick))

    return work


def told_by(work):
    running = launcher().start(work, 0, Limits(silence=100))
    notes = {}
    while running.outcome is None:
        notes |= {m[1]: m[2] for m in running.poll(0.2) if m[0] == "note"}
    assert running.outcome == "completed", running.message
    return notes
