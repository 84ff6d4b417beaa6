from perfkit.findings.text import plain, plain_lines


def test_what_is_cut_is_marked_whether_it_is_long_or_enormous():
    assert plain("x" * 300) == "x" * 300
    assert plain("x" * 301) == "x" * 299 + "…"
    assert plain("word " * 10**6) == plain("word " * 100)


def test_an_enormous_text_of_what_cannot_be_seen_is_short():
    assert plain("\x1b" * 10**6 + "end") == "…"
    assert plain(" " * 10**6) == "…"


def test_lines_keep_their_breaks_and_no_more_than_forty_are_shown():
    assert plain_lines("a\n  b\x1b[2J\n") == "a\n  b[2J"
    assert plain_lines("a\n" * 10**6).count("\n") == 39
