from dataclasses import replace
from html.parser import HTMLParser

import pytest

from perfkit.findings.record import Verdict
from perfkit.findings.store import save
from perfkit.findings.text import plain
from tests.findings.made import failed, finding

ATTACK = '<img src=x onerror="alert(1)">&\x1b[2J\u202e'


class Page(HTMLParser):
    """The tags and the text of a page; it must close what it opens."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.text.append(data)


def test_the_text_says_the_verdict_and_the_numbers():
    assert repr(finding()).splitlines()[:5] == [
        "data-pipeline: prefetched is the fastest way here.",
        "  - It was ahead in every round.",
        "  - The model waits less.",
        "Next: dataset = dataset.prefetch(tf.data.AUTOTUNE)",
        "  variant     examples/s (95 % interval)  against its baseline  verdict",
    ]
    row = repr(finding()).splitlines()[5].split("  ")
    assert row[1] == "prefetched"
    assert row[-1] == "faster; the fastest here"


def test_a_verdict_alone_holds_its_words_and_escapes_them():
    said = Verdict(headline=ATTACK, because=("Set `a=1`.",), next="Do `b`.")
    page = Page(said._repr_html_())
    assert "img" not in page.tags
    assert "".join(page.text) == f"{plain(ATTACK)}Set a=1.Next: Do b."
    assert "ul" not in Page(Verdict(headline="None.")._repr_html_()).tags


def test_the_page_holds_what_the_text_holds():
    found = finding(guess="parallel", stopped=True)
    page = " ".join(Page(found._repr_html_()).text)
    for words in (
        found.question,
        "faster; the fastest here",
        "2 of 8 cores",
        "parallel",
    ):
        assert words in page
    assert "TensorFlow 2.21.0, 2025-03-14 09:26" in page
    assert "stopped before its budget" in page


def test_the_noise_floor_is_told_or_said_to_be_unknown():
    assert "Noise floor: 4.0 %" in repr(finding(noise_floor=1.04))
    assert "Noise floor: unknown" in repr(finding(noise_floor=None))


def test_where_it_is_saved_is_shown_without_the_way_there(tmp_path):
    found = finding()
    path = save(found, tmp_path / "perfkit-findings")
    assert f"Saved as perfkit-findings/{path.name}" in repr(found)
    assert str(tmp_path) not in found._repr_html_()


def test_nothing_from_a_file_becomes_markup_or_an_escape():
    verdict = Verdict(headline=ATTACK, because=(ATTACK,), next=ATTACK, winner=ATTACK)
    found = finding(
        {"naive": 10.0, ATTACK: 20.0},
        verdict=verdict,
        question=ATTACK,
        experiment=ATTACK,
        recorded=ATTACK,
        guess=ATTACK,
        unavailable={ATTACK + "2": ATTACK},
        extra=(failed(ATTACK + "3", "crashed", ATTACK),),
        machine=replace(finding().machine, cpu=ATTACK, versions={"tensorflow": ATTACK}),
    )
    html = found._repr_html_()
    assert "img" not in Page(html).tags
    assert "<img" not in html
    for shown in (html, repr(found)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_lines_of_code_keep_their_breaks():
    verdict = Verdict(headline="h", next="for x in y:\n    use(x)\x1b[1m")
    found = finding(verdict=verdict)
    assert "for x in y:\n    use(x)[1m" in found._repr_html_()


@pytest.mark.parametrize("rounds", [0, 1])
def test_little_or_nothing_measured_can_be_shown(rounds):
    found = finding({"naive": 10.0} if rounds else {}, rounds=rounds)
    assert "Noise floor: unknown" in repr(found) or rounds
    assert ("<table>" in found._repr_html_()) == bool(rounds)


def test_the_table_is_a_data_frame_of_numbers():
    table = finding(extra=(failed("xla", "crashed", "x"),)).table()
    assert list(table.variant) == ["prefetched", "parallel", "naive", "xla"]
    timing = {t.variant: t for t in finding().timings}["parallel"]
    row = table.set_index("variant").loc["parallel"]
    assert (row.rate, row.low, row.high) == (timing.rate, timing.low, timing.high)
    assert row.against == "naive"
    assert table.problem.iloc[-1] == "crashed: x"
    assert table.rate.dtype == float


def test_code_in_a_verdict_is_set_as_code_and_nothing_else_is():
    verdict = Verdict(headline="h", because=("use `a < b`",), next="`x` <b>y</b>")
    html = replace(finding(), verdict=verdict)._repr_html_()
    assert "use <code>a &lt; b</code>" in html
    assert "<code>x</code> &lt;b&gt;y&lt;/b&gt;" in html
