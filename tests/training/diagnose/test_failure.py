from pathlib import Path

import perfkit
from perfkit.engine.trial import Note
from perfkit.errors import RunError
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


def test_an_endless_message_is_cut_and_its_end_stays():
    def shout():
        raise ValueError("a" * 10**6 + "what is wrong")

    said = caught(shout)["said"]
    assert len(said) <= 4000
    assert said.endswith("what is wrong")


def test_what_is_wrong_in_a_graph_is_said_and_not_where_it_was():
    words = (
        "Graph execution error:\n\nDetected at node Gather defined at (most recent "
        'call last):\n  File "train.py", line 4, in <module>\n\nindices[0] = 9 is '
        "not in [0, 4)\n\t [[{{node Gather}}]] [Op:__inference_1]"
    )
    said = "ValueError: indices[0] = 9 is not in [0, 4)"
    assert failure.in_short(ValueError(words)) == said


def test_a_sentence_of_perfkits_is_passed_on_without_a_traceback():
    def ends():
        yield "step"
        raise RunError("train.py exited with 3.")

    passed = ["step", Note(failure.PROBLEM, "train.py exited with 3.")]
    assert list(failure.as_notes(ends)()) == passed
