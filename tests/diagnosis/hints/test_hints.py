"""Hints stand on the line of the mistake, and what cannot be read tells nothing."""

import functools
from pathlib import Path

import pytest
from IPython.core.compilerop import CachingCompiler

from perfkit.diagnosis.hints import hints, hints_in
from perfkit.diagnosis.maker import InFile

GUILTY = Path(__file__).resolve().parents[2] / "guilty"
HEALTHY = sorted((GUILTY / "healthy").glob("[!_]*.py"))
FIXED = sorted(p for p in GUILTY.glob("*.py") if "def make_fixed" in p.read_text())
# What of each planted mistake stands on the line of its hint. Of the others nothing is
# seen before they run: how long an epoch, a step or a validation takes.
PLANTED = {
    "callback_checkpoint": "save_freq=16",
    "callback_per_batch": "self.model.get_weights()",
    "eager": "run_eagerly=True",
    "loop_input": "dataset.map(decoded",
    "metrics": "num_thresholds=2000",
    "no_cache": "_files().map(_decoded",
    "no_prefetch": ".apply(testing.sleep(",
    "python_generator": "from_generator(counted",
    "python_in_map": "tf.numpy_function(",
    "python_rows": "class Table(keras.utils.PyDataset)",
    "retracing_callback": "average(numbered(self.seen))",
    "retracing_number": "train_step(images, labels, rate_at(step))",
    "retracing_shapes": "reduce_retracing=False",
    "serial_map": ".map(_augmented)",
    "slow_read": "buffer_size=64",
    "small_batch": "batch=4",
}


SOUND = [
    *(InFile(str(path), "make_training") for path in HEALTHY),
    *(InFile(str(path), "make_fixed") for path in FIXED),
]


@pytest.mark.parametrize("maker", SOUND, ids=lambda maker: Path(maker.path).stem)
def test_a_healthy_or_fixed_training_has_no_hints(maker):
    assert hints(maker) == ()


@pytest.mark.parametrize(("name", "code"), PLANTED.items(), ids=[*PLANTED])
def test_a_planted_mistake_is_seen_on_its_line(name, code):
    path = GUILTY / f"{name}.py"
    (hint,) = hints(InFile(str(path), "make_training"))
    assert code in path.read_text().splitlines()[hint.line - 1]
    assert hint.code in path.read_text().splitlines()[hint.line - 1]


def test_only_what_the_function_can_reach_is_looked_at():
    source = "{}def make_training():\n  return helped()\ndef helped(): {}\n"
    other = "def other():\n  m.compile(run_eagerly=True)\n"
    assert hints_in(source.format(other, "pass"), "make_training") == ()
    assert len(hints_in(source.format(other, "other()"), "make_training")) == 1
    # What stands outside of functions runs whatever is asked for.
    assert len(hints_in(f"{source.format(other, 'pass')}other()", "make_training")) == 1
    main = f"{source.format(other, 'pass')}if __name__ == '__main__':\n  other()"
    assert hints_in(main, "make_training") == ()


def noted(function):
    @functools.wraps(function)
    def wrapper():
        return function()

    return wrapper


@noted
def has_a_mistake():
    return "model".compile(run_eagerly=True)


def has_none():
    return "model".compile()


class Makers:
    def has_a_mistake_too(self):
        return "model".compile(run_eagerly=True)


@pytest.mark.parametrize("maker", [has_a_mistake, Makers().has_a_mistake_too])
def test_a_function_is_found_in_its_file_through_decorators_and_classes(maker):
    (hint,) = hints(maker)
    line = Path(__file__).read_text().splitlines()[hint.line - 1]
    assert line.strip() == hint.code == 'return "model".compile(run_eagerly=True)'


@pytest.mark.parametrize(
    "maker",
    [
        *(has_none, len, functools.partial(has_a_mistake), Makers(), eval("lambda: 1")),
        # A lambda tells nothing of its own.
        lambda: "model".compile(run_eagerly=True),
    ],
    ids=["right", "builtin", "partial", "object", "no source", "lambda"],
)
def test_what_is_right_or_has_no_source_tells_nothing(maker):
    assert hints(maker) == ()


CELL = """import keras

def make_training():
    model = keras.Sequential([])
    model.compile(
        run_eagerly=True)
    return model
"""


def test_the_line_is_that_of_the_cell_a_function_stands_in():
    compiler, defined = CachingCompiler(), {}
    code = compile(CELL.replace("import keras", ""), compiler.cache(CELL), "exec")
    exec(code, defined)
    (hint,) = hints(defined["make_training"])
    assert (hint.line, hint.code) == (6, "run_eagerly=True)")


MISTAKE = b"def make_training():\n    m.compile(run_eagerly=True)\n"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"def (", b"\x00", b"\xff\xfe\x00", b"# coding: none\n", b"(" * 9000),
        b"x = " + b"-" * 20000 + b"1",
        b"x = a" + b".b()" * 20000,
        b"x = " + b"1 + " * 20000 + b"1",
        MISTAKE + b"# " + b"x" * 100_000,
        b"caf\xe9 = 1\n" + MISTAKE,
    ],
    ids=lambda c: repr(c[:12]),
)
def test_a_file_that_cannot_be_read_tells_nothing(tmp_path, content):
    (tmp_path / "train.py").write_bytes(content)
    assert hints(InFile(str(tmp_path / "train.py"), "make_training")) == ()


@pytest.mark.parametrize(
    "before",
    [
        *(b"", b"\r\n\r\n", b"# coding: latin-1\ncaf\xe9 = 1\n", b"\xef\xbb\xbf"),
        # Neither of these ends a line of Python.
        b"x = 1\n\x0c\ny = 2\n",
        "x = 'a\u2028b'\n".encode(),
    ],
    ids=repr,
)
def test_the_line_is_the_one_that_an_editor_shows(tmp_path, before):
    (tmp_path / "train.py").write_bytes(before + MISTAKE)
    (hint,) = hints(InFile(str(tmp_path / "train.py"), "make_training"))
    assert hint.code == "m.compile(run_eagerly=True)"
    assert hint.line == (before + MISTAKE).count(b"\n")


def test_there_are_no_more_hints_than_a_reader_reads():
    found = hints_in("m.compile(run_eagerly=True)\n" * 500)
    assert [hint.line for hint in found] == list(range(1, 31))
    (wide,) = hints_in(f"m.compile(run_eagerly=True, x='{'x' * 5000}')")
    assert len(wide.code) == 160
