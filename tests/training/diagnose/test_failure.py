import linecache
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import perfkit
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.maker import InFile


def caught(call):
    try:
        call()
    except Exception as error:
        return failure.note_of(error)
    raise AssertionError("nothing was raised")


def test_the_lines_of_the_user_are_told_and_none_of_perfkits():
    # perfkit opens the file that is not there: its frames are left out.
    note = caught(InFile("/no/such/file.py", "make_training"))
    package = Path(perfkit.__file__).parent
    files = [Path(file) for file, _, _ in note["frames"]]
    assert Path(__file__) in files
    assert [file for file in files if package in file.parents] == []
    assert note["said"].startswith("FileNotFoundError: ")


def test_what_keras_writes_in_bold_is_told_without_what_makes_it_so():
    def fails():
        raise ValueError("A call failed.\n\x1b[1mNo such padding.\x1b[0m\n")

    assert caught(fails)["said"] == "ValueError: A call failed.\nNo such padding."


def test_a_cell_shows_its_lines_although_another_process_ran_it():
    cell = "def make_training():\n    return 1 / 0\n"
    names = {}
    exec(compile(cell, "<cell 7>", "exec"), names)
    note = caught(names["make_training"])
    known = len(cell), None, cell.splitlines(keepends=True), "<cell 7>"
    linecache.cache["<cell 7>"] = known
    said = failure.in_text(note).splitlines()
    assert said[0] == "Traceback (most recent call last):"
    assert said[-3:] == [
        '  File "<cell 7>", line 2, in make_training',
        "    return 1 / 0",
        "ZeroDivisionError: division by zero",
    ]


def test_lines_of_a_notebooks_file_are_those_of_its_cells(tmp_path):
    path = tmp_path / "train.ipynb"
    cells = [new_code_cell("x = 1\ny = 2"), new_code_cell("z = x / 0\nprint(z)")]
    nbformat.write(new_notebook(cells=cells), path)
    frames = [[str(path), 3, "<module>"], [str(tmp_path / "no.ipynb"), 1, "f"]]
    said = failure.in_text({"frames": frames, "said": "ZeroDivisionError: by zero"})
    assert said.splitlines()[1:4] == [
        f'  File "{path}, code cell 2", line 1, in <module>',
        "    z = x / 0",
        f'  File "{tmp_path / "no.ipynb"}", line 1, in f',
    ]


def test_an_endless_message_is_cut_and_its_end_stays():
    def shout():
        raise ValueError("a" * 10**6 + "what is wrong")

    said = caught(shout)["said"]
    assert len(said) <= 4000
    assert said.endswith("what is wrong")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "Graph execution error:\n\nDetected at node Gather defined at (most recent "
            'call last):\n  File "train.py", line 4, in <module>\n\nindices[0] = 9 is '
            "not in [0, 4)\n\t [[{{node Gather}}]] [Op:__inference_1]",
            "ValueError: indices[0] = 9 is not in [0, 4)",
        ),
        (
            'in user code:\n\n    File "train.py", line 4, in step  *\n        go(x)\n'
            "\n    ValueError: No gradients provided for any variable.\n",
            "ValueError: No gradients provided for any variable.",
        ),
    ],
)
def test_what_is_wrong_in_a_graph_is_said_and_not_where_it_was(words, said):
    assert failure.in_short(ValueError(words)) == said
