import dataclasses
import io

from rich.console import Console

from perfkit.fleet import show
from perfkit.fleet.members import Gathered
from tests.findings import made
from tests.fleet.scripted import member

SLY = "<script>alert(1)</script>\x1b[2J"


def completed(number, rates=None, version="2.21.0", **more):
    machine = dataclasses.replace(made.MACHINE, versions={"tensorflow": version})
    found = made.finding(rates, machine=machine, **more)
    told = {"said": found.verdict.headline, "seconds": 61.2, "document": found}
    return member(number, how="completed", **told)


def gathered(*outcomes):
    return Gathered(asked="data-pipeline", outcomes=outcomes, seconds=64.0)


FAILED = member(9, how="left", said=f"It left. {SLY}", seconds=12.0)


def test_the_table_tells_of_each_how_it_ended_what_was_fastest_and_how_long_it_took():
    lines = repr(gathered(completed(1), FAILED)).splitlines()
    assert lines[0] == "1 of 2 sent what they measured, in 64 s."
    rows = {" ".join(line.split()[:3]): line for line in lines}
    assert "host outcome fastest" in rows
    assert "prefetched, 1,9" in rows["host 1 completed"]
    assert "61 s" in rows["host 1 completed"]
    assert "host 9 left" in rows
    assert lines[-1] == "Asked: data-pipeline"


USUAL = {"naive": 1000.0, "prefetched": 1900.0}


def slow(*rates):
    room = gathered(*(completed(number, one) for number, one in enumerate(rates, 1)))
    return list(room.slow())


def test_a_machine_whose_baseline_is_slow_is_named_with_what_shows_it():
    (said,) = slow(USUAL, USUAL, {"naive": 400.0, "prefetched": 800.0})
    assert said.startswith("host 3 is well behind: 'naive' ran at ")
    assert " examples/s" in said
    assert "on the 2 others at" in said
    # One that differs by little is not called slow, nor is one beside one.
    assert slow(USUAL, USUAL, {"naive": 900.0}) == []
    assert slow(USUAL, {"naive": 100.0}) == []


def test_different_versions_of_tensorflow_are_told():
    room = gathered(completed(1), completed(2), completed(3, version="2.20.0"))
    told = list(show.closing(room))
    assert told[-1].endswith("the same TensorFlow: 2.21.0 on 2, 2.20.0 on 1.")
    assert len(list(show.closing(gathered(completed(1), completed(2))))) == 1


def test_nothing_that_a_machine_says_becomes_markup_or_moves_the_cursor():
    room = gathered(completed(1), FAILED)
    assert "<script>" not in room._repr_html_()
    assert "\x1b" not in repr(room)
    row = member(1, began=0.0, doing=SLY)
    assert "<script>" not in show.rows_in_html([row])
    console = Console(width=200, record=True, force_terminal=False)
    show.write(room, console)
    written = console.export_text()
    assert "\x1b" not in written
    assert "It left. <script>alert(1)</script>" in written


def test_plain_lines_say_only_what_is_new():
    row, written = member(1), io.StringIO()
    with show.drawn_on(Console(file=written)) as draw:
        draw([row])
        row.began, row.doing = 0.0, "starting"
        draw([row])
        for share in (0.1, 0.2, 0.3):
            row.share = share
            draw([row])
        for seconds in (6, 7):
            row.silent = f"nothing heard for {seconds} s"
            draw([row])
        row.how, row.said = "left", "It was killed."
        draw([row])
    assert written.getvalue().splitlines() == [
        "host 1: waiting for its turn",
        "host 1: getting ready",
        "host 1: measuring",
        "host 1: nothing is heard of it",
        "host 1: left: It was killed.",
    ]


def test_a_terminal_is_left_without_the_rows():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, color_system=None)
    with show.drawn_on(console) as draw:
        draw([member(1, began=0.0, doing="Round 2", share=0.5)])
        before = screen.getvalue()
    assert "50 % Round 2" in before
    assert "1 running" in before
    # The last thing written erases the lines and leaves the cursor on the first.
    assert screen.getvalue().endswith("\x1b[1A\x1b[2K")


def test_live_rows_say_how_many_are_where_and_who_is_behind():
    rows = [
        member(1, began=0.0, doing="Round 2", share=0.5, left="30 s left"),
        member(2, began=0.0, doing="Round 1", behind="behind: 2 % done"),
        member(3),
        FAILED,
    ]
    assert show.summary(rows) == "2 running, 1 waiting, 1 left"
    assert show.state(rows[0]) == "Round 2, 30 s left"
    assert show.state(rows[1]).endswith("behind: 2 % done")
    html = show.rows_in_html(rows)
    assert html.count("<progress") == 4
    assert "value='0.500'" in html
