import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from perfkit.findings import report as reports
from perfkit.findings.record import Edit, Verdict
from perfkit.findings.report import Fold, Report, Table, in_html, in_text
from perfkit.findings.shown import Shown
from perfkit.findings.store import save
from perfkit.findings.text import plain, printable
from perfkit.machine.record import Busy, Load
from tests.findings.made import MACHINE, QUESTION, failed, finding, trial
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
    # Lines that are alike are told once.
    lines = {"files": "a(1)", "shards": "b(1)", "files, warm": "a(1)", "more": "b(2)"}
    (code,) = [f.code for f in finding(code=lines).report.folds if f.code]
    assert [name for name, _ in code] == [
        "files, and likewise files, warm",
        "shards, and with other numbers more",
    ]


def test_the_answer_is_first_and_the_rest_is_folded():
    answer = "prefetched is the fastest way here."
    next_step = "dataset = dataset.prefetch(tf.data.AUTOTUNE)"
    short = written(finding(), width=120)
    said = [answer, "variant", next_step, QUESTION, "Measured on Intel Xeon"]
    assert in_order(short, said)
    assert "TensorFlow 2.21.0, 2025-03-14 09:26" in short
    assert len(short.splitlines()) <= 25
    folded = "It was ahead in every round."
    assert folded not in short
    assert f"How sure is this?\n- {folded}" in written(finding(), in_full=True)
    html = finding()._repr_html_()
    # The chart has the rows of the table, which is folded below it.
    below = "<details>", '<th scope="col">variant', folded, *said[3:]
    assert in_order(html, [answer, next_step, 'role="img"', *below])


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
        *("  train.py, lines 3-4", "    a", "  - b", "  + c", "    x"),
        "! It takes memory.",
    ]
    html = in_html(Report(verdict=verdict))
    assert '<span class="perfkit-sure">sure: 1.5 to 2.0</span>' in html
    assert '<span class="perfkit-old">- b</span>' in html
    assert '<span class="perfkit-new">+ c</span>' in html


def test_each_variant_has_its_rate_its_ratio_and_what_that_means():
    crash = failed("broken", "crashed", "raised ValueError: no such file")
    code = {"naive": "a", "late": "b"}
    found = finding(extra=(crash,), code=code)
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


def test_what_holds_nothing_is_not_shown_and_of_many_rows_the_first():
    rows = tuple((f"row {n}", "x") for n in range(20))
    report = Report(verdict=Verdict(headline="h"), table=Table("t", ("a", "b"), rows))
    assert "12 more with --all." in in_text(report)
    assert "row 19" in in_text(report, in_full=True)
    assert "row 19" in in_html(report)
    empty = Table("Nothing", ("a",), ())
    folds = (Fold("None"), Fold("Empty", tables=(empty,)), Fold("Full", ("x",)))
    report = Report(verdict=Verdict(headline="h"), folds=folds, table=empty)
    assert [fold.title for fold in report.filled] == ["Full"]
    assert taken_apart(in_html(report)).all("table") == []
    # A row without cells is a row.
    fold = Fold("More", tables=(Table("All", ("a",), ((),)),))
    html = in_html(Report(verdict=Verdict(headline="h"), folds=(fold,)))
    assert '<tr><th scope="row"></th></tr>' in html


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


def test_the_guess_turns_and_an_early_end_are_told():
    found = finding(guess="parallel", stopped=True)
    for said in (repr(found), found._repr_html_()):
        assert "Your guess: parallel" in said
        early = "The run was stopped early; this holds the measurements until then."
        assert early in said
    assert "one trial ran after the other" in in_text(found.report, in_full=True)
    alone = in_text(finding(baseline="").report, in_full=True)
    assert "The baseline is" not in alone
    assert "may differ by 4.0 %" in finding(noise_floor=1.04)._repr_html_()
    made = finding(extra=(trial("naive", 1000.0, 4, turns=(0.1, 0.2)),))
    assert "took 2 turns" in in_text(made.report, in_full=True)


@pytest.mark.parametrize(
    ("budget", "tried", "said"),
    [
        (90.0, (), "90 s for measuring, 9.54 s of them spent. Preparation"),
        (1.5, (), "9.54 s were spent. A first round may take twice the budget."),
        (90.0, (12.0,), "of them spent. Single tries took another 4.76 s."),
    ],
)
def test_what_was_spent_is_told_with_what_may_take_longer(budget, tried, said):
    extra = tuple(trial("learning", 1000.0, 0, started=at) for at in tried)
    found = finding(rounds=1, budget_s=budget, extra=extra)
    whole = in_text(found.report, in_full=True)
    assert said in whole
    assert "one round has no spread" in whole


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


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(width):
    crash = failed("broken", "crashed", "raised " + "x" * 200)
    text = written(finding(extra=(crash,)), width=width, terminal=True)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_what_is_piped_or_code_keeps_its_lines_whole():
    long = "word " * 60 + "end."
    text = written(finding(verdict=Verdict(headline=long)), width=60)
    assert long in text.splitlines()
    code = Verdict(headline="h", next=f"`{long}`")
    text = written(finding(verdict=code), width=60, terminal=True)
    assert long in text


OPEN = Verdict(headline="Is any faster? Not known.", sure="not known yet")
BUSY = {"t": (0.0, 0.2), "cpu_other": (3.0, 5.0)}
TOP = Busy(program="chromium", cores=3.2), Busy(program="x", cores=0.8)
NAMED = {"samples": BUSY, "machine": replace(MACHINE, load=Load(top=TOP))}
KEPT, AGAIN = (
    "Other programs kept 4 of 8 cores busy",
    "un again with a budget of 180 s.",
)


@pytest.mark.parametrize(
    ("verdict", "more", "said"),
    [
        (OPEN, NAMED, f"{KEPT} (`chromium`, `x` at the start). End them, or r{AGAIN}"),
        (
            *(OPEN, {"samples": BUSY}),
            f"{KEPT}; `perfkit doctor` names them. End them, or r{AGAIN}",
        ),
        # Little is nobody's fault, and ending it would not help.
        (OPEN, {"samples": BUSY | {"cpu_other": (0.6, 0.7)}}, f"R{AGAIN}"),
        (OPEN, {"samples": {}}, f"R{AGAIN}"),
        # What the verdict says itself stays, and what is sure needs nothing.
        (replace(OPEN, next="Give it a GPU."), {"samples": BUSY}, "Give it a GPU."),
        (replace(OPEN, sure="sure"), {"samples": BUSY}, ""),
    ],
    ids=["named", "unnamed", "little", "nothing", "said", "sure"],
)
def test_what_is_open_for_noise_says_what_would_settle_it(verdict, more, said):
    assert finding(verdict=verdict, **more).report.verdict.next == said


def test_what_to_type_to_repeat_it_switches_off_what_was():
    given = {"pinned": False, "both": True, "images": "", "side": 8}
    said = finding(parameters=given).report.repeat
    assert "perfkit run data-pipeline --no-pinned --both --side=8 --budget=60" in said
    mine = finding(code={"serial": "f()", "yours": "mine()"}).report.repeat
    assert mine.startswith("Repeat it: run its cell again (")


def test_what_nothing_shows_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="Shown has no report"):
        repr(Shown())


def test_what_is_cut_is_marked_whether_it_is_long_or_enormous():
    assert plain("x" * 300) == "x" * 300
    assert plain("x" * 301) == "x" * 299 + "…"
    assert plain("word " * 10**6) == plain("word " * 100)
    assert plain("\x1b" * 10**6 + "end") == "…"
    assert plain(" " * 10**6) == "…"
    # Lines keep their breaks and their indentation.
    assert printable("a\r\n\tb\x1b[2J\u202e\x0bc\n") == "a\n\tb[2J c\n"
