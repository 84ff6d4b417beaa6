"""Accounts of real scripts, from a run to what is saved."""

import json
import linecache
import os
import textwrap
from dataclasses import replace

import perfkit
from perfkit import cli
from perfkit.findings.account import Account
from perfkit.findings.reading import parse
from perfkit.training.account import session as sessions
from perfkit.training.account.session import AccountSession
from perfkit.training.diagnose.maker import LineNames, maker
from perfkit.training.diagnose.script import whole_script
from tests.findings.page.books import book, code, write
from tests.training.account.accounts import account, whole

BUDGET = 6.0
MODEL = """
import keras
import numpy as np

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
x, y = np.ones((64, 8), "f4"), np.ones((64, 4), "f4")
"""


def script(folder, text):
    """A script below the model that all of them train."""
    path = folder / "train.py"
    path.write_text(MODEL + textwrap.dedent(text))
    return path


def numbered(path, words):
    return next(n for n, t in enumerate(path.read_text().splitlines(), 1) if words in t)


def on(found, number, file="train.py"):
    return next(one for one in found.lines if (one.file, one.line) == (file, number))


# Those that run nothing.


def shown(monkeypatch, capsys, found, *arguments):
    """What `perfkit lines` says where this is what a session finds."""
    monkeypatch.setattr(
        "perfkit.training.account.session.open_lines", lambda *_, **__: found
    )
    return cli.main(["lines", "train.py", *arguments]), capsys.readouterr()


def test_the_command_shows_an_account_and_writes_it_as_json(here, monkeypatch, capsys):
    ended, said = shown(monkeypatch, capsys, whole())
    assert ended == 0
    assert said.out.startswith("Read each file once.")
    ended, said = shown(monkeypatch, capsys, whole(), "--json", "-")
    assert (ended, json.loads(said.out)["kind"]) == (0, "account")
    assert "Read each file once." in said.err
    shown(monkeypatch, capsys, whole(), "--json", "x.json")
    assert parse((here / "x.json").read_bytes(), "x", Account) == whole()
    assert shown(monkeypatch, capsys, account(elsewhere_s=0.0))[0] == 1
    assert shown(monkeypatch, capsys, replace(whole(), stopped=True))[0] == 130


def test_files_are_told_as_seen_from_the_folder_of_the_script(here):
    path = script(here, "x = 1\n")
    names = LineNames(maker(path, read=whole_script))
    assert names.locate(str(path), 3) == ("train.py", 0, 3)
    helper = here / "models" / "blocks.py"
    assert names.locate(str(helper), 7) == (os.path.join("models", "blocks.py"), 0, 7)
    # No path says whose machine it is.
    assert names.locate(str(here.parent / "shared.py"), 7) == ("shared.py", 0, 7)
    assert names.locate(str(here.parent / "b" / "shared.py"), 7)[0] == "b/shared.py"
    assert names.code(str(path), 3) == "import numpy as np"
    assert names.code(str(path), 999) == names.code(str(helper), 1) == ""
    without = LineNames(maker(path, read=whole_script), with_text=False)
    assert without.code(str(path), 3) == ""


def test_a_line_of_another_cell_is_not_taken_for_one_of_this_cell(monkeypatch):
    texts = {
        "1.py": "def make():\n    return decode\n",
        "2.py": "def decode():\n    5\n",
    }
    known = {}
    for name, text in texts.items():
        file = os.path.join(os.sep, "scratch", "ipykernel_4711", name)
        lines = (len(text), None, text.splitlines(keepends=True), file)
        monkeypatch.setitem(linecache.cache, file, lines)
        exec(compile(text, file, "exec"), known)
    make, decode = (known[name].__code__.co_filename for name in ("make", "decode"))
    names = LineNames(known["make"])
    assert (names.locate(make, 2), names.code(make, 2)) == (
        ("", 0, 2),
        "    return decode",
    )
    assert names.locate(decode, 2) == ("another cell", 0, 2)
    assert names.code(decode, 2) == "    5"


# Those that run.


def test_calls_of_predict_in_a_loop_are_on_their_line_and_a_helpers_work_on_its_own(
    here, capsys, alone_here
):
    (here / "helper.py").write_text("def busy():\n    return sum(range(300_000))\n")
    path = script(
        here,
        """
        from helper import busy

        # So many updates that it is looked at for its budget alone.
        model.fit(x, y, epochs=12, verbose=0)
        while True:
            for row in x:
                model.predict(row[None], verbose=0)
                busy()
        """,
    )
    asked = ["lines", "train.py", "--budget", str(BUDGET), "--no-source"]
    assert cli.main([*asked, "--json", "x.json"]) == 0
    assert "predict" in capsys.readouterr().out
    data = (here / "x.json").read_bytes()
    found = parse(data, "x", Account)
    assert on(found, numbered(path, "predict(")).find_call("predict").count > 3
    assert on(found, 2, "helper.py").seconds["Python"] > 0
    assert [one.name for one in (here / "perfkit-findings").iterdir()]
    # Not one line of the source is in it.
    assert found.text == {}
    assert {one.code for one in found.lines} == {""}
    assert b"verbose=0" not in data
    assert b"300_000" not in data
    assert not found.ended
    # All that was looked at stands somewhere.
    assert 0 < found.repeated_s + found.once_s <= found.wall_s + 1.0


def test_what_was_seen_of_a_script_that_raises_is_kept(here, alone_here):
    path = script(
        here,
        """
        for _ in range(6):
            model.fit(x, y, epochs=1, verbose=0)
        raise ValueError("lost it")
        """,
    )
    # With so few updates it is looked at for longer, on a busy machine too.
    session = AccountSession(maker(path, read=whole_script), budget=BUDGET, saves=False)
    for _ in session.events():
        pass
    found = session.finding
    assert "lost it" in found.error
    assert found.ended
    assert found.verdict.warnings[-1].startswith("The training raised ValueError")
    fits = on(found, numbered(path, "model.fit"))
    assert fits.find_call("fit").count == 6
    assert fits.code.strip() == "model.fit(x, y, epochs=1, verbose=0)"
    assert found.updates == 12


def test_stop_keeps_what_was_seen_and_lines_of_a_notebook_are_those_of_cells(
    here, monkeypatch, alone_here
):
    fits = "# Train.\nwhile True:\n    model.fit(x, y, verbose=0)\n"
    path = write(book("# A title", code(MODEL), code(fits)), here / "train.ipynb")
    session = AccountSession(maker(path, read=whole_script), budget=60.0, saves=False)
    told = []
    # As soon as a line was told: its script has run for a second.
    monkeypatch.setattr(
        sessions, "_doing", lambda note: told.append(note.get("rows")) or "x"
    )
    for _ in session.events():
        if any(told):
            session.stop()
    found = session.finding
    assert (found.stopped, found.ended) == (True, False)
    assert found.samples > 0
    (fit,) = (one for one in found.lines if one.find_call("fit"))
    assert (fit.file, fit.cell, fit.line) == ("train.ipynb", 2, 3)
    assert fit.code.strip() == "model.fit(x, y, verbose=0)"
    assert "code cell 2, line 3" in fit.where


def test_a_script_without_a_step_to_swap_is_diagnosed_by_its_account(
    here, capsys, alone_here
):
    script(
        here,
        """
        import tensorflow as tf

        def step(_):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            grads = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply(grads, model.trainable_variables)

        list(map(step, range(10**6)))
        """,
    )
    ended = cli.main(["diagnose", "train.py", "--budget", "20"])
    said = capsys.readouterr()
    assert ended == 0, said.err
    assert "train.py" in said.out
    (path,) = (here / "perfkit-findings").glob("*.json")
    found = perfkit.load(path)
    assert found.account.lines
    assert "o change was tried" in found.verdict.much
