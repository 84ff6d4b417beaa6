import io
from dataclasses import replace

import made
import pytest
from rich.console import Console

from perfkit.doctor.page import log_of
from perfkit.findings.report import write
from perfkit.machine.record import Said, Start
from tests.doctor import looked
from tests.findings.test_report import Page


def written(found, width=100, terminal=False):
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None
    )
    write(found.report, console, whole=True)
    return file.getvalue()


def test_the_answer_comes_first_then_the_parts_and_what_costs_most():
    found = looked.examination(looked.SLOW, looked.WRONG, looked.WELL, looked.HIDDEN)
    said = [
        "GPU:0 computes wrongly.",
        "TensorFlow can use NVIDIA RTX 4090: it computed right there.",
        "FAIL: GPU:0 computes wrongly",
        "  The matrix product on GPU:0 is off",
        "WARN: The cores save power",
        "  The governor is powersave.",
        "  Cores run at a lower frequency.",
        "  do: sudo cpupower frequency-set -g performance",
        "Processor",
        "Disk",
        "1 check is ok. Not known here: How the GPU is connected.",
        "What is ok",
        "All cores may be used",
        "What TensorFlow said as it started",
        "unexplained: ",
        "1 other line is harmless.",
    ]
    for text in (written(found), "".join(Page(found._repr_html_()).text)):
        places = [text.index(part) for part in said]
        assert places == sorted(places)
    assert 'may be slower: "ptxas too old" XLA is slower.' in written(found)
    assert "All cores" not in repr(found)


def test_the_first_sentence_says_what_to_do():
    found = looked.examination(looked.SLOW)
    assert "WARN: The cores save power" in repr(found)
    assert "WARN: The cores save power" in found._repr_html_()
    said = repr(found).splitlines()[0]
    command = "sudo cpupower frequency-set -g performance"
    assert said == f"The cores save power: run `{command}`."
    assert "How much that costs was not measured." in repr(found)
    assert repr(looked.examination(LONG)).startswith("The cores save power.\n")
    # A machine with nothing wrong is told so.
    text = repr(looked.examination(looked.WELL, machine=looked.BARE))
    assert text.startswith("TensorFlow trains on the processor: no NVIDIA GPU is seen")
    assert text.splitlines()[1] == "Nothing was found here that costs speed."
    assert text.endswith("1 check is ok.")


LONG = replace(looked.SLOW, remedy="sudo " + "x" * 90)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_but_a_command_is_wider_than_the_terminal(width):
    long = replace(looked.WRONG, evidence="word " * 80, title="x" * 200)
    found = looked.examination(long, LONG)
    text = written(found, width, terminal=True)
    lines = [line.rstrip() for line in text.splitlines()]
    command = f"  do: {LONG.remedy}"
    assert max(len(line) for line in lines if line != command) <= width
    # It stays in one piece.
    assert f"{command}\n" in text
    assert f"{command}\n" in written(found, width)


def test_whatever_a_machine_says_is_shown_and_never_obeyed():
    hostile = "\x1b[31m<img src=x onerror='x'>\x07 [bold]b[/bold] :smile:\u202e"
    check = replace(
        looked.SLOW, title=hostile, evidence=hostile, why=hostile, remedy=hostile
    )
    start = Start(said=(Said(line=hostile, meaning="", weight="unexplained"),))
    machine = replace(looked.BARE, cpu=hostile, start=start, no_gpu=hostile)
    found = looked.examination(check, machine=machine, missed=(hostile,))
    for terminal in (True, False):
        text = written(found, terminal=terminal)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert " ".join(text.split()).count("[bold]b[/bold] :smile:") == 10
    assert "img" not in Page(found._repr_html_()).tags


def test_the_log_says_what_it_means_on_this_machine():
    said = Said(
        line="failed call to cuInit",
        meaning="No GPU is used. Without an NVIDIA GPU that is as it should be.",
        weight="fatal",
    )
    start = Start(said=(said,), devices=("CPU:0",))
    alone = replace(looked.BARE, start=start)
    found = [
        log_of(machine)[0][0] for machine in (alone, replace(alone, nvidia_cards=1))
    ]
    assert [name for name, _ in found] == ["no GPU", "no GPU"]
    assert [line.count("as it should be") for _, line in found] == [1, 0]
    both = replace(start, devices=("CPU:0", "GPU:0"))
    assert log_of(replace(looked.FULL, start=both))[0][0][0] == "noted"


def test_how_fast_each_part_is_has_its_table_and_what_was_missed_is_said_last():
    text = written(looked.examination(microbenchmarks=made.finding()))
    assert "prefetched is the fastest way here." in text
    assert "faster; the fastest here" in text
    found = looked.examination(missed=("No trial ran.",), stopped=True)
    assert repr(found).endswith(
        "No trial ran.\nIt was stopped before everything had been looked at."
    )


def test_in_a_notebook_the_text_is_given_back_and_not_shown(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(looked.examination()).startswith("TensorFlow can use")
