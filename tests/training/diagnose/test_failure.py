from perfkit.engine.trial import Note
from perfkit.errors import RunError
from perfkit.training.diagnose import failure


def test_an_endless_message_is_cut_and_its_end_stays():
    said = failure.note_of(ValueError("a" * 10**6 + "what is wrong"))["said"]
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
