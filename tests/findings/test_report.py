import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from perfkit.findings import report as reports
from perfkit.findings.record import Edit, Verdict
from perfkit.findings.report import Report, in_html, in_text
from perfkit.findings.store import save
from perfkit.findings.text import plain, printable
from tests.findings.made import failed, finding
from tests.findings.page.pages import POLICY, Page, problems
from tests.training.diagnose.diagnosed import diagnosis

ATTACK = '<img src=x onerror="alert(1)">&\x1b[2J\u202e'


def taken_apart(html):
    """A page, which must close what it opens."""
    page = Page(html)
    assert page.astray == page.open == []
    return page


def written(found, width=100, terminal=False, **more):
    options = {"file": io.StringIO(), "width": width, "force_terminal": terminal}
    reports.write(found.report, Console(**options, color_system=None), **more)
    return options["file"].getvalue()


def words_in_sight(report):
    """What is read before anything is unfolded: code and the rows of tables apart."""
    verdict = report.verdict
    said = verdict.headline, verdict.much, reports.how_sure(verdict), *verdict.warnings
    title = report.table.title if report.table else ""
    return " ".join((*said, verdict.next, *report.besides, title)).split()


def in_order(text, parts):
    places = [text.index(part) for part in parts]
    return places == sorted(places)


@pytest.mark.parametrize(
    "shown", [finding(), diagnosis()], ids=["finding", "diagnosis"]
)
def test_a_notebook_shows_the_answer_with_its_chart_above_the_folds(shown):
    html = shown._repr_html_()
    page = taken_apart(html)
    assert in_order(html, ['class="perfkit-answer"', 'role="img"', "<details>"])
    assert len(page.all("svg")) == 1
    assert problems(POLICY + html) == []
    # Ids of its own: the same answer may be shown twice.
    identities = [
        {a["id"] for _, a in Page(text).elements if "id" in a}
        for text in (html, shown._repr_html_())
    ]
    assert not set.intersection(*identities)
    assert "perfkit-chart" not in repr(shown)


def test_a_chart_that_fails_hides_no_answer(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError(ATTACK)

    monkeypatch.setattr("perfkit.questions.gallery.chart", fail)
    page = taken_apart(finding()._repr_html_())
    assert finding().verdict.headline in page.text
    assert "Its chart could not be drawn (ZeroDivisionError): " in page.text
    assert page.all("svg") == page.all("img") == []
    # Its rows are in sight then.
    monkeypatch.undo()
    assert len(page.all("details")) < len(Page(finding()._repr_html_()).all("details"))


def test_every_variant_is_shown_with_its_lines_and_none_of_them_does_anything():
    lines = f"for one in data:\n    step({ATTACK!r}, one)"
    found = replace(finding(), code={"naive": lines, ATTACK: "step()"})
    told = written(found, in_full=True)
    assert "\nnaive\n    for one in data:\n        step(" in told
    assert "for one in data" not in written(found)
    page = taken_apart(found._repr_html_())
    assert len(page.all("pre")) == len(found.code)
    assert page.all("img") == []
    assert "Every variant, with its code" not in written(finding(), in_full=True)


def test_how_much_how_sure_and_what_to_type():
    first = Edit(file="train.py", line=3, old="a\nb", new="a\nc")
    edits = first, Edit(old="x", new=None)
    verdict = Verdict(
        headline="Cache the images.",
        much="This is 1.7 times as fast.",
        **{"sure": "sure", "interval": "1.5 to 2.0", "edits": edits},
        warnings=("It takes memory.",),
    )
    assert in_text(Report(verdict=verdict)).splitlines() == [
        "Cache the images.",
        "This is 1.7 times as fast. Sure: 1.5 to 2.0.",
        *("train.py, lines 3-4", "    a", "  - b", "  + c", "    x"),
        "! It takes memory.",
    ]
    html = in_html(Report(verdict=verdict))
    assert '<span class="perfkit-sure">sure: 1.5 to 2.0</span>' in html
    assert '<span class="perfkit-old">- b</span>' in html
    assert '<span class="perfkit-new">+ c</span>' in html


def test_each_variant_has_its_rate_its_ratio_and_what_that_means():
    crash = failed("broken", "crashed", "raised ValueError: no such file")
    found = finding(extra=(crash,), code={"naive": "a", "late": "b"})
    lines = written(found, width=120).splitlines()
    row = {line.split()[0]: line for line in lines if line.strip()}
    names = [name for name in row if name in ("prefetched", "parallel", "naive")]
    assert names == ["prefetched", "parallel", "naive"]
    assert "1.9" in row["prefetched"]
    assert row["prefetched"].rstrip().endswith("faster; the fastest here")
    assert "baseline" in row["naive"]
    assert "not timed" in row["broken"]
    assert "crashed: raised ValueError: no such file" in row["broken"]
    assert re.search(r"not timed +was not reached", row["late"])
    assert "was not reached" not in in_text(finding(code={"naive": "a"}).report)
    # The table is a data frame of numbers.
    table = finding(extra=(failed("xla", "crashed", "x"),)).table()
    assert list(table.variant) == ["prefetched", "parallel", "naive", "xla"]
    timing = {t.variant: t for t in finding().timings}["parallel"]
    row = table.set_index("variant").loc["parallel"]
    assert (row.rate, row.low, row.high) == (timing.rate, timing.low, timing.high)
    assert row.against == "naive"
    assert (table.problem.iloc[-1], table.rate.dtype) == ("crashed: x", float)


@pytest.mark.parametrize("rounds", [0, 1])
def test_little_or_nothing_measured_can_be_shown(rounds):
    verdict = Verdict(headline="Nothing ran.")
    found = finding({"naive": 10.0} if rounds else {}, rounds=rounds, verdict=verdict)
    assert "Nothing ran." in repr(found)
    assert ("No variant could be timed." in repr(found)) != bool(rounds)
    assert ("<table>" in found._repr_html_()) == bool(rounds)
    whole = in_text(found.report, in_full=True)
    assert ("The run was too short to show" in whole) != bool(rounds)
    assert (" 1 variant, each" if rounds else " 0 variants, each") in whole


def test_where_it_is_saved_is_shown_without_the_way_there(tmp_path, monkeypatch):
    found = finding()
    path = save(found, tmp_path / "perfkit-findings")
    assert f"Saved as perfkit-findings/{path.name}" in repr(found)
    assert str(tmp_path) not in found._repr_html_()
    assert "Saved as kept/x\n" in written(found, saved="Saved as kept/x")
    # In a home it is named without its user.
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    path = save(found, tmp_path / "ada")
    assert f"Saved as {path.name}" in repr(found)


def test_code_in_a_verdict_is_set_as_code_and_markup_of_a_console_is_text():
    verdict = Verdict(headline="h", because=("use `a < b`",), next="`x` <b>y</b>")
    html = replace(finding(), verdict=verdict)._repr_html_()
    assert "use <code>a &lt; b</code>" in html
    assert "<code>x</code> &lt;b&gt;y&lt;/b&gt;" in html
    lines = Verdict(headline="h", next="for x in y:\n    use(x)\x1b[1m")
    found = finding(verdict=lines)
    assert "for x in y:\n    use(x)[1m" in found._repr_html_()
    assert "for x in y:\n    use(x)[1m\n" in written(found)
    verdict = Verdict(headline="\x1b[31mred\x07 [bold]b[/bold] :smile:")
    text = written(finding(verdict=verdict), terminal=True)
    assert "red [bold]b[/bold] :smile:" in text


def test_what_is_cut_is_marked_whether_it_is_long_or_enormous():
    assert plain("x" * 300) == "x" * 300
    assert plain("x" * 301) == "x" * 299 + "…"
    assert plain("word " * 10**6) == plain("word " * 100)
    assert plain("\x1b" * 10**6 + "end") == "…"
    assert plain(" " * 10**6) == "…"
    # Lines keep their breaks and their indentation.
    assert printable("a\r\n\tb\x1b[2J\u202e\x0bc\n") == "a\n\tb[2J c\n"
