import ast
import html
import math
import os
import re
import shutil
from pathlib import Path
from typing import get_args

import nbformat
import pytest
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

from perfkit.documents import load
from perfkit.engine import statistics
from perfkit.findings.account import Account
from perfkit.machines.recording import MICROBENCHMARKS, TRAININGS
from perfkit.training.diagnose.diagnose import LEAST_BUDGET_S

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.glob("notebooks/**/*.ipynb"))
BESIDE = sorted(ROOT.glob("notebooks/*.py"))
COLAB = ROOT / "binder" / "colab.ipynb"
# Enough for a round of every variant of the widest notebook, on two busy cores.
SMALL_S = 6.0
# The budget of these holds TensorFlow's start as well, and several parts; in the one
# that is run on busy machines, too, each of those has to give a rate there.
LARGER_S = dict.fromkeys(("03", "07", "10", "11", "12"), 20.0) | {"09": 40.0}
PASSPORT = {MICROBENCHMARKS, TRAININGS}
CHART = re.compile(r'<svg[^>]*\brole="img"[^>]*\baria-label="([^"]+)"')

# Measured even where no minutes are asked for; all others show recordings then.
QUICK = {"00_start_here", "09_two_machines"}
# It measures this machine, whatever is recorded.
UNRECORDED = {"09_two_machines"}


def notebooks(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


every_notebook = notebooks(NOTEBOOKS)
every_recorded_notebook = notebooks([p for p in NOTEBOOKS if p.stem not in UNRECORDED])
every_measured_notebook = notebooks(
    [
        pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in NOTEBOOKS
    ]
)


def read(path):
    return nbformat.read(path, as_version=4)


def cells(path, kind):
    return [cell for cell in read(path).cells if cell.cell_type == kind]


def run_in(folder, notebook):
    """The notebook with what its cells gave in this folder."""
    for file in BESIDE:
        shutil.copy(file, folder)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=500, resources=resources).execute()
    return notebook


def measured(folder):
    """What is kept there; an account has a budget of its own."""
    kept = map(load, folder.glob("perfkit-findings/*.json"))
    return [found for found in kept if not isinstance(found, Account)]


def budget_of(path):
    return LARGER_S.get(path.stem[:2], SMALL_S)


QUIZ = re.compile(
    r"(\d\.\d+) times as fast, interval (\d\.\d+) to (\d\.\d+)"
    r".*?</summary>(.*?)</details>",
    re.DOTALL,
)


def test_a_quiz_answers_what_the_code_judges():
    prose = (cell.source for path in NOTEBOOKS for cell in cells(path, "markdown"))
    asked = [found for source in prose for found in QUIZ.findall(source)]
    assert asked
    for ratio, low, high, answer in asked:
        judged = statistics.judge(*(math.log(float(n)) for n in (low, ratio, high)))
        said = {answer.find(one): one for one in get_args(statistics.Comparing)}
        assert said[min(place for place in said if place >= 0)] == judged


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def shown(notebook):
    """All HTML that a reader sees."""
    forms = (output.get("data", {}) for output in outputs(notebook))
    return "\n".join(form["text/html"] for form in forms if "text/html" in form)


def check_outputs(notebook):
    """No error, no word on stderr, and every chart says what it shows."""
    assert "error" not in {output.output_type for output in outputs(notebook)}
    streams = [o for o in outputs(notebook) if o.output_type == "stream"]
    assert [o.text for o in streams if o.name == "stderr"] == []
    alts = CHART.findall(shown(notebook))
    assert len(alts) == shown(notebook).count("<svg") > 0
    assert all(len(alt) > 40 for alt in alts)


def check_first(notebook, folder):
    """The first one names lines, then races one away; what explains it is folded."""
    (race,) = measured(folder)
    (file,) = folder.glob("perfkit-findings/account*.json")
    account = load(file)
    page = shown(notebook)
    assert account.lines[0].code.strip() in html.unescape(page)
    assert html.escape(race.verdict.headline) in page
    # The live displays go when the runs end: the answers alone are left.
    told = [o.data for o in outputs(notebook) if o.output_type == "display_data"]
    assert told == [{}, {}]
    # What is folded stays so when all cells are run: the answers stand above it.
    headings = [c for c in notebook.cells if c.source.startswith("## ")]
    is_folded = ["jp-MarkdownHeadingCollapsed" in c.metadata for c in headings]
    assert is_folded == [False, False, *[True] * (len(headings) - 2)]


@every_measured_notebook
def test_a_notebook_runs_from_top_to_bottom_within_the_budget(
    path, tmp_path, monkeypatch
):
    monkeypatch.setenv("PERFKIT_BUDGET", str(budget_of(path)))
    notebook = run_in(tmp_path, read(path))
    check_outputs(notebook)
    kept = measured(tmp_path)
    assert kept
    parts = [found for found in kept if getattr(found, "experiment", "") in PASSPORT]
    # A passport shares its budget out among what it measures.
    whole = len({found.experiment for found in parts}) == len(PASSPORT)
    assert sum(found.budget_s for found in parts if whole) <= budget_of(path)
    rest = [found for found in kept if not (whole and found in parts)]
    # No diagnosis and no race takes less.
    least = max(budget_of(path), LEAST_BUDGET_S)
    assert {found.budget_s for found in rest} <= {budget_of(path), least}
    if path == NOTEBOOKS[0]:
        check_first(notebook, tmp_path)


@pytest.fixture(scope="module")
def replaying():
    """A kernel that shows recordings; that of one notebook after the other."""
    starting = NotebookClient(nbformat.v4.new_notebook())
    kernel = starting.create_kernel_manager()
    starting.start_new_kernel(env=os.environ | {"PERFKIT_REPLAY": "1"})
    yield kernel
    run_sync(kernel.shutdown_kernel)(now=True)


@every_recorded_notebook
def test_a_notebook_shows_recordings_from_top_to_bottom(path, tmp_path, replaying):
    notebook = replay(read(path), tmp_path, replaying)
    check_outputs(notebook)
    assert "not run here" in shown(notebook)


def replay(notebook, folder, kernel):
    """The notebook with what its cells gave in this folder, after others."""
    for file in BESIDE:
        shutil.copy(file, folder)
    # TensorFlow stays loaded, here and where trials start; of names nothing is left.
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}"))
    client = NotebookClient(notebook, timeout=500, km=kernel)
    client.execute()
    client.kc.stop_channels()
    return notebook


def hosted(*words):
    """The cells of Colab's notebook that hold one of these words; none installs."""
    notebook = read(COLAB)
    notebook.cells = [c for c in notebook.cells if any(w in c.source for w in words)]
    for cell in notebook.cells:
        lines = cell.source.splitlines()
        cell.source = "\n".join(x for x in lines if not x.startswith("%pip"))
    return notebook


def test_colabs_script_is_written_and_its_panel_shown(tmp_path, replaying):
    wanted = hosted("import perfkit", "%%writefile", "perfkit.panel")
    told = outputs(replay(wanted, tmp_path, replaying))
    assert (tmp_path / "train.py").is_file()
    view = "application/vnd.jupyter.widget-view+json"
    assert any(view in output.get("data", {}) for output in told)


@every_notebook
def test_no_output_is_stored_and_cells_are_short_and_say_no_budget(path):
    notebook = read(path)
    assert outputs(notebook) == []
    assert "widgets" not in notebook.metadata
    assert all(cell.execution_count is None for cell in cells(path, "code"))
    long = [c.id for c in cells(path, "code") if len(c.source.splitlines()) > 12]
    long += [c.id for c in cells(path, "markdown") if len(c.source.split()) > 120]
    assert long == []
    assert "ccc" not in "".join(cell.cell_type[0] for cell in notebook.cells)
    assert not any("budget" in cell.source for cell in cells(path, "code"))


@every_notebook
def test_a_notebook_opens_with_a_question_and_closes_with_your_model(path):
    prose = "\n".join(cell.source for cell in cells(path, "markdown"))
    headings = [line for line in prose.splitlines() if line.startswith("#")]
    assert re.fullmatch(r"# .+\?", headings[0])
    assert headings[-2:] == ["## Recap", "## Now your model"]


@every_notebook
def test_the_first_code_cell_holds_the_imports(path):
    first, *others = cells(path, "code")
    kinds = (ast.Import, ast.ImportFrom)
    body = ast.parse(first.source).body
    # Only the first notebook shows something there: the training that it is about.
    if path.stem != "00_start_here":
        assert all(isinstance(node, kinds) for node in body)
    made = [node for node in body if isinstance(node, kinds)]
    imports = [getattr(node, "module", node.names[0].name) for node in made]
    # A reader's own charts are drawn with seaborn; code as found has a clock and NumPy.
    known = {"seaborn", "numpy", "time", "keras", "tensorflow", "IPython", "parts"}
    assert {name.partition(".")[0] for name in imports} - known == {"perfkit"}
    tops = (ast.parse(cell.source).body for cell in others)
    assert not any(isinstance(node, kinds) for body in tops for node in body)
