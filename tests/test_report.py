import io

import made
import pytest
from rich.console import Console

from perfkit import report
from perfkit.findings import store
from perfkit.findings.record import Verdict


def written(finding, width=100, terminal=False):
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None
    )
    report.write(finding, console)
    return file.getvalue()


def test_verdict_reasons_and_next_step_are_written_in_this_order():
    text = written(made.finding())
    said = [
        made.QUESTION,
        "prefetched is the fastest way here.",
        "Because",
        "- It was ahead in every round.",
        "- The model waits less.",
        "Next",
        "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
        "variant",
        "Noise floor: ",
        "Machine: Intel Xeon Platinum 8481C, 2 of 8 cores, 16 GB, no GPU, Linux 6.1",
        "Recorded: 2025-03-14 09:26, with a budget of 60 s.",
    ]
    places = [text.index(part) for part in said]
    assert places == sorted(places)


def test_each_variant_has_its_rate_its_ratio_and_what_that_means():
    lines = written(made.finding()).splitlines()
    row = {line.split()[0]: line for line in lines if "(" in line and " to " in line}
    assert "faster" in row["prefetched"]
    assert "1.9" in row["prefetched"]
    assert "baseline" in row["naive"]
    assert list(row)[:3] == ["prefetched", "parallel", "naive"]


def test_a_variant_that_failed_is_in_the_table_with_its_reason():
    crash = made.failed("broken", "crashed", "raised ValueError: no such file")
    text = written(made.finding(extra=(crash,)), width=120)
    row = next(line for line in text.splitlines() if line.startswith("broken"))
    assert "not timed" in row
    assert "crashed: raised ValueError: no such file" in row


def test_a_finding_without_any_timing_is_still_written():
    text = written(
        made.finding({}, noise_floor=None, verdict=Verdict(headline="Nothing ran."))
    )
    assert "Nothing ran." in text
    assert "Noise floor: unknown" in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(width):
    crash = made.failed("broken", "crashed", "raised " + "x" * 200)
    text = written(made.finding(extra=(crash,)), width=width, terminal=True)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_what_is_piped_keeps_its_sentences_whole():
    headline = "word " * 60 + "end."
    text = written(made.finding(verdict=Verdict(headline=headline)), width=60)
    assert headline in text.splitlines()


def test_the_next_step_keeps_the_indentation_of_code():
    verdict = Verdict(headline="So.", next="dataset.map(\n    decode,\n)")
    text = written(made.finding(verdict=verdict))
    assert "dataset.map(\n    decode,\n)\n" in text


def test_nothing_that_a_terminal_obeys_comes_through():
    hostile = "\x1b[31mred\x07 [bold]b[/bold] :smile:"
    verdict = Verdict(headline=hostile, because=(hostile,), next=hostile)
    crash = made.failed(hostile, "crashed", hostile)
    text = written(
        made.finding(verdict=verdict, question=hostile, extra=(crash,)), terminal=True
    )
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]b[/bold] :smile:" in text


def test_the_path_is_written_as_one_would_type_it_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finding = made.finding()
    path = store.save(finding, tmp_path / "kept")
    assert f"Saved as: kept/{path.name}\n" in written(finding, width=300)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f"Saved as: {path}\n" in written(finding, width=300)
