import ast
import html
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from perfkit.findings import store
from perfkit.measure.measurement import TWIN
from perfkit.recording.making import LADDER, TRAININGS

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.glob("notebooks/**/*.ipynb"))
# Enough for a round of every variant of the widest notebook, on two busy cores.
SMALL_S = "12"
PASSPORT = {LADDER, TRAININGS}
CHART = re.compile(r'<svg[^>]*\brole="img"[^>]*\baria-label="([^"]+)"')

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def cells(path, kind):
    return [cell for cell in read(path).cells if cell.cell_type == kind]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Run a notebook once, in a folder of its own; give its cells and the folder."""
    known = {}

    def run(path):
        if path not in known:
            folder = tmp_path_factory.mktemp(path.stem)
            notebook = read(path)
            resources = {"metadata": {"path": str(folder)}}
            NotebookClient(notebook, timeout=500, resources=resources).execute()
            known[path] = (notebook, folder)
        return known[path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFKIT_BUDGET", SMALL_S)
        yield run


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def shown(notebook):
    """All HTML that a reader sees."""
    return "\n".join(
        output["data"]["text/html"]
        for output in outputs(notebook)
        if "text/html" in output.get("data", {})
    )


def test_there_are_notebooks():
    assert "00_start_here" in {path.stem for path in NOTEBOOKS}


@every_notebook
def test_a_notebook_runs_from_top_to_bottom_without_an_error(path, executed):
    notebook, _ = executed(path)
    kinds = {output.output_type for output in outputs(notebook)}
    assert "error" not in kinds
    streams = [o for o in outputs(notebook) if o.output_type == "stream"]
    assert [o.text for o in streams if o.name == "stderr"] == []


@every_notebook
def test_every_chart_in_a_notebook_says_what_it_shows(path, executed):
    notebook, _ = executed(path)
    alts = CHART.findall(shown(notebook))
    assert len(alts) == shown(notebook).count("<svg") > 0
    assert all(len(alt) > 40 for alt in alts)


@every_notebook
def test_a_notebook_keeps_to_the_budget_of_the_environment(path, executed):
    _, folder = executed(path)
    kept = [store.load(file) for file in folder.glob("perfkit-findings/*.json")]
    assert kept
    parts = [found for found in kept if getattr(found, "experiment", "") in PASSPORT]
    # A passport shares its budget out among what it measures.
    whole = len({found.experiment for found in parts}) == len(PASSPORT)
    spent = sum(found.budget_s for found in parts if whole)
    assert spent <= float(SMALL_S)
    rest = [found for found in kept if not (whole and found in parts)]
    assert {found.budget_s for found in rest} <= {float(SMALL_S)}


def test_the_first_notebook_shows_the_verdict_and_a_table(executed):
    notebook, folder = executed(ROOT / "notebooks" / "00_start_here.ipynb")
    (file,) = folder.glob("perfkit-findings/*.json")
    finding = store.load(file)
    page = shown(notebook)
    assert html.escape(finding.verdict.headline) in page
    assert "<table>" in page
    variants = {trial.variant for trial in finding.trials} - {TWIN}
    assert len(variants) > 4
    assert all(html.escape(variant) in page for variant in variants)


def test_the_first_notebook_leaves_one_line_of_progress(executed):
    notebook, _ = executed(ROOT / "notebooks" / "00_start_here.ipynb")
    (progress,) = [
        output["data"]["text/plain"]
        for output in outputs(notebook)
        if output.output_type == "display_data"
    ]
    assert re.fullmatch(r"Finished: \d+ trials in \d+ s", progress)


def test_the_first_notebook_has_at_most_three_code_cells_besides_imports():
    code = cells(ROOT / "notebooks" / "00_start_here.ipynb", "code")
    assert len(code) <= 4


@every_notebook
def test_no_output_and_no_widget_is_stored(path):
    notebook = read(path)
    assert outputs(notebook) == []
    assert "widgets" not in notebook.metadata
    assert all(cell.execution_count is None for cell in cells(path, "code"))


@every_notebook
def test_a_notebook_opens_with_a_question_and_closes_with_your_model(path):
    headings = [
        line
        for cell in cells(path, "markdown")
        for line in cell.source.splitlines()
        if line.startswith("#")
    ]
    assert re.fullmatch(r"# .+\?", headings[0])
    assert headings[-2:] == ["## Recap", "## Now your model"]


@every_notebook
def test_the_first_code_cell_holds_the_imports_and_they_are_of_perfkit(path):
    first, *others = cells(path, "code")
    imports = [
        node.names[0].name if isinstance(node, ast.Import) else node.module
        for node in ast.parse(first.source).body
    ]
    assert {name.partition(".")[0] for name in imports} == {"perfkit"}
    assert not any("import" in cell.source for cell in others)


@every_notebook
def test_cells_are_short(path):
    assert all(len(c.source.splitlines()) <= 12 for c in cells(path, "code"))
    assert all(len(c.source.split()) <= 120 for c in cells(path, "markdown"))


@every_notebook
def test_there_are_never_three_code_cells_in_a_row(path):
    kinds = "".join(cell.cell_type[0] for cell in read(path).cells)
    assert "ccc" not in kinds


@every_notebook
def test_a_notebook_leaves_the_budget_to_its_default(path):
    assert not any("budget" in cell.source for cell in cells(path, "code"))
