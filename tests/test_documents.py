"""What the documents say is so, and what they tell people to write runs."""

import ast
import html
import os
import re
import shlex
import subprocess
from pathlib import Path

import nbformat
import pytest
import yaml

import perfkit
import perfkit.questions
from benchmarks import first_answer
from perfkit import options
from tests.conftest import as_if_it_lay_there

ROOT = Path(__file__).parent.parent
# Where a document may take a file's folder for granted.
PLACES = ("", "perfkit/questions", "perfkit/engine")
MADE_LATER = {
    *(".venv/", "artifacts/browser", ".setup/", "perfkit-findings/", "my-notebooks/"),
    "my-notebooks/perfkit-findings/",
    "perfkit/questions/pixel_scaling.py",
    "tests/questions/test_pixel_scaling.py",
}
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def block(path):
    """The code that the document gives for a file."""
    found = re.search(rf"`{re.escape(path)}`:\n\n```python\n(.*?)```", TEXT, re.DOTALL)
    return found[1]


@pytest.fixture
def pixel_scaling(tmp_path, monkeypatch):
    """The document's experiment, as if its file had been written."""
    name = "perfkit.questions.pixel_scaling"
    (tmp_path / "pixel_scaling.py").write_text(block(f"{name.replace('.', '/')}.py"))
    with as_if_it_lay_there(monkeypatch, name, tmp_path) as module:
        yield module


def test_the_experiment_in_the_document_gives_a_finding(pixel_scaling, here, capfd):
    assert perfkit.experiments()["pixel-scaling"] is pixel_scaling.PixelScaling
    finding = perfkit.run("pixel-scaling", side=64, budget=3, guess="2x", folder=here)
    # Neither a notebook nor a terminal: nothing is shown.
    assert capfd.readouterr() == ("", "")
    assert perfkit.load(finding.path).verdict == finding.verdict
    assert len(perfkit.findings(here)) == 1
    assert finding.guess == "2x"
    assert finding.parameters["side"] == 64
    assert {t.variant for t in finding.timings} == {"one_by_one", "all_at_once"}
    assert finding.notes["pixels"] == 64 * 64
    # A busy machine may leave it open.
    open_yet = 'This run does not show whether anything is faster than "one_by_one".'
    assert finding.verdict.headline in ("Scale whole images.", open_yet)


def test_the_test_in_the_document_passes(pixel_scaling):
    names = {}
    exec(block("tests/questions/test_pixel_scaling.py"), names)
    tests = [function for name, function in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


RACE = (ROOT / "docs" / "race-in-ci.md").read_text()
# It answers, notes what it was asked, and ends with the code that the test wants.
STUB = '#!/bin/sh\necho "$@" > asked\necho An answer.\nexit "$CODE"\n'


def race_step():
    """The workflow's lines for a shell."""
    flow = yaml.safe_load(re.search(r"```yaml\n(.*?)\n```", RACE, re.DOTALL)[1])
    lines = [step.get("run", "") for step in flow["jobs"]["race"]["steps"]]
    return next(text for text in lines if "perfkit race" in text)


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_the_workflow_of_a_race_fails_where_one_is_slower(code, ends, tmp_path):
    (tmp_path / "perfkit").write_text(STUB)
    (tmp_path / "perfkit").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    summary = tmp_path / "summary.md"
    done = subprocess.run(
        # As a runner does it.
        ["bash", "-e", "-c", race_step()],
        cwd=tmp_path,
        env={"PATH": path, "CODE": str(code), "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (ends, "")
    assert "An answer." in done.stdout
    assert ("::warning::" in done.stdout) == (code == 3)
    assert summary.read_text() == "    An answer.\n"
    asked = options.parse(shlex.split((tmp_path / "asked").read_text()))
    assert (asked.trainings, asked.commit) == (["train.py"], ["origin/main"])
    assert asked.worse == 0.05


@pytest.mark.parametrize(
    "document", ["README", "CONTRIBUTING", "ARCHITECTURE", "docs/threats"]
)
def test_every_file_that_a_document_names_is_there(document):
    text = (ROOT / f"{document}.md").read_text()
    named = re.findall(r"[`(]((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|py|toml))[`)]", text)
    assert named
    missing = [
        path
        for path in named
        if path not in MADE_LATER
        and not any((ROOT / place / path).exists() for place in PLACES)
    ]
    assert missing == []


CLAIMS = (ROOT / "docs" / "claims.md").read_text()


def claims():
    """The rows of the table of claims: claim, where it is met, where tested, answer."""
    lines = [line for line in CLAIMS.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[0] != "claim"]


@pytest.mark.parametrize("row", claims(), ids=lambda row: row[0][:40])
def test_a_claim_is_tested_under_a_heading_that_is_there_or_says_what_it_needs(row):
    claim, met, tested, answer = row
    assert claim
    assert met
    assert answer
    found = re.fullmatch(r"`(\w+)`, \*(.+)\*", tested)
    if not found:
        # A command that would test it belongs to what it needs.
        assert re.match(r"cannot be tested here: needs .+`.*perfkit .+`", tested)
        return
    notebook = nbformat.read(ROOT / "notebooks" / f"{found[1]}.ipynb", as_version=4)
    prose = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert f"## {found[2]}" in [line for text in prose for line in text.splitlines()]


def test_the_example_in_the_readme_is_what_its_command_writes():
    finding = perfkit.load(first_answer.FINDING)
    picture = first_answer.PICTURE.read_text()
    assert html.escape(perfkit.chart(finding).alt, quote=False) in picture
    assert first_answer.text(finding) in first_answer.README.read_text()


def test_every_claim_about_gpus_is_listed_with_the_test_that_proves_it():
    source = (ROOT / "tests" / "gpu" / "test_on_a_gpu.py").read_text()
    tests = [
        f"| {ast.get_docstring(part)} | `{part.name}` |"
        for part in ast.parse(source).body
        if isinstance(part, ast.FunctionDef) and part.name.startswith("test_")
    ]
    listed = (ROOT / "docs" / "trust.md").read_text().split("| NAME | there |")[1]
    rows = listed.strip().splitlines()[1:]
    assert [row.rpartition(" | ")[0] + " |" for row in rows] == tests
