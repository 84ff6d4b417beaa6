from dataclasses import replace
from xml.etree import ElementTree

import made

from perfkit.doctor.page import in_html
from perfkit.machine.record import Said, Start
from tests.doctor import looked


def read(found):
    """The cards as a tree; what is not closed or not escaped is an error."""
    return ElementTree.fromstring(in_html(found))


def texts(tree, path):
    return ["".join(node.itertext()) for node in tree.findall(path)]


def test_each_part_is_a_card_and_each_fault_an_item():
    tree = read(looked.examination(looked.SLOW, looked.WRONG, looked.WELL))
    parts = texts(tree, "dl[@class='perfkit-parts']/div/dt")
    assert parts[:3] == ["Processor", "Memory", "GPU"]
    assert texts(tree, "ul[@class='perfkit-checks']/li/b") == [
        "FAIL: GPU:0 computes wrongly",
        "WARN: The cores save power",
    ]
    assert texts(tree, "ul/li/p[@class='perfkit-do']") == [
        "Do: sudo cpupower frequency-set -g performance"
    ]
    assert "1 check is ok." in texts(tree, "p")


def test_a_machine_with_nothing_wrong_is_told_so():
    tree = read(looked.examination(looked.WELL, machine=looked.BARE))
    assert texts(tree, "p") == [
        "TensorFlow trains on the processor: no NVIDIA GPU is seen here.",
        "Nothing was found here that costs speed.",
        "1 check is ok.",
    ]
    assert tree.find("ul") is None
    assert texts(tree, "details/ul/li") == ["All cores may be used"]


def test_the_log_is_folded_and_its_harmless_lines_are_counted():
    tree = read(looked.examination())
    assert texts(tree, "details/ul/li") == [
        'may be slower: "ptxas too old" XLA is slower.',
        'unexplained: "the moon is full"',
    ]
    assert texts(tree, "details/p") == ["1 other line is harmless."]


def test_a_command_in_a_sentence_is_set_as_code():
    missing = replace(looked.WRONG, evidence="Type `pip install x`.", why="Or `y`.")
    tree = read(looked.examination(missing))
    assert texts(tree, "ul/li/p/code") == ["pip install x", "y"]
    untried = replace(looked.FULL, start=None)
    assert texts(read(looked.examination(machine=untried)), "p/b/code") == [
        "perfkit doctor --probe"
    ]


def test_whatever_a_machine_says_is_shown_and_never_obeyed():
    hostile = "<script>alert(1)</script><img src=x onerror='x'>&\x1b"
    check = replace(
        looked.SLOW, title=hostile, evidence=hostile, why=hostile, remedy=hostile
    )
    start = Start(said=(Said(line=hostile, meaning=hostile, weight="fatal"),))
    machine = replace(looked.BARE, cpu=hostile, start=start)
    tree = read(looked.examination(check, machine=machine, missed=(hostile,)))
    assert {node.tag for node in tree.iter()} <= {
        *("div", "style", "dl", "dt", "dd", "ul", "li", "p", "b"),
        *("details", "summary"),
    }
    assert "".join(tree.itertext()).count("<script>alert(1)</script>") == 8


def test_a_ladder_is_the_card_of_any_finding():
    ladder = made.finding()
    assert ladder._repr_html_() in in_html(looked.examination(ladder=ladder))


def test_what_was_missed_and_that_it_was_stopped_is_said():
    tree = read(looked.examination(missed=("No trial ran.",), stopped=True))
    assert texts(tree, "p")[-2:] == [
        "No trial ran.",
        "It was stopped before everything had been looked at.",
    ]
