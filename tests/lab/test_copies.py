import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from perfkit import lab
from perfkit.errors import BadFileError
from perfkit.findings import store
from perfkit.lab import COPIES, refresh
from tests.findings.made import finding
from tests.training.race.repositories import commit_all, git

ROOT = Path(__file__).resolve().parents[2]
NAME = "00_start_here.ipynb"


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(s, id=f"c{n}") for n, s in enumerate(sources)]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


@pytest.fixture
def root(tmp_path):
    """A folder with what is shipped: two notebooks."""
    root = tmp_path / "root"
    (root / "notebooks").mkdir(parents=True)
    (root / "notebooks" / NAME).write_text(notebook("import perfkit", "1 + 1"))
    (root / "notebooks" / "01_next.ipynb").write_text(notebook("2 + 2"))
    return root


def start(root):
    """What the lab does before it opens."""
    return refresh(root / "notebooks", root / COPIES)


def ship(root, *sources):
    """Ship a newer notebook and start; gives what that says."""
    (root / "notebooks" / NAME).write_text(notebook(*sources))
    return start(root)


def run(path):
    """Leave in a notebook and beside it what running all its cells leaves."""
    made = nbformat.read(path, as_version=4)
    for number, cell in enumerate(made.cells, 1):
        cell.execution_count = number
        cell.outputs = [nbformat.v4.new_output("stream", text="ran")]
    made.cells.append(nbformat.v4.new_code_cell(""))
    made.metadata["widgets"] = {"state": {}}
    nbformat.write(made, path)
    (path.parent / ".ipynb_checkpoints").mkdir(exist_ok=True)
    shutil.copyfile(path, path.parent / ".ipynb_checkpoints" / path.name)
    store.save(finding(), path.parent / "perfkit-findings")
    (path.parent / "two-machines.html").write_text("exported")


def change(path):
    made = nbformat.read(path, as_version=4)
    made.cells[0].source += "\nmine = 1"
    nbformat.write(made, path)
    return path.read_bytes()


def sources(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def notebooks(root):
    return sorted(path.name for path in (root / COPIES).glob("*.ipynb"))


def test_running_every_notebook_leaves_a_clone_clean_and_brings_the_newer(root):
    shutil.copyfile(ROOT / ".gitignore", root / ".gitignore")
    commit_all(root, "Ship")
    assert start(root) == (
        "Your notebooks are in my-notebooks/, which git leaves alone.",
    )
    for path in (root / COPIES).glob("*.ipynb"):
        run(path)
    assert git(root, "status", "--porcelain") == ""
    (told,) = ship(root, "import perfkit", "3 + 3")
    assert told == f"Replaced by a newer {NAME}: yours was unchanged."
    assert sources(root / COPIES / NAME) == ["import perfkit", "3 + 3"]
    assert sources(root / COPIES / "01_next.ipynb") == ["2 + 2", ""]
    assert start(root) == ()


def test_what_a_learner_wrote_stays_until_it_has_another_name(root):
    start(root)
    mine = change(root / COPIES / NAME)
    assert start(root) == ()
    (told,) = ship(root, "3 + 3")
    assert told.startswith(f"There is a newer {NAME}. Your changed copy stays as it is")
    assert (root / COPIES / NAME).read_bytes() == mine
    (root / COPIES / NAME).rename(root / COPIES / "mine.ipynb")
    assert start(root) == ()
    assert sources(root / COPIES / NAME) == ["3 + 3"]
    assert (root / COPIES / "mine.ipynb").read_bytes() == mine


@pytest.mark.fault("lab", "SIGKILL", sees="The next start makes the missing copies.")
def test_a_start_that_was_killed_is_gone_on_with(root, monkeypatch):
    written = []

    def killed(path, data):
        if written:
            raise KeyboardInterrupt
        written.append(path)
        store.write_whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(lab, "write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            start(root)
    assert notebooks(root) == [NAME]
    assert start(root) == ()
    assert notebooks(root) == [NAME, "01_next.ipynb"]


@pytest.mark.parametrize(
    "spoiled", [b"", b"[1]", b"\x00", b'{"00_start_here.ipynb": 1}']
)
def test_where_nobody_knows_what_a_copy_was_made_from_it_stays(root, spoiled):
    start(root)
    mine = change(root / COPIES / NAME)
    (root / COPIES / lab._MADE_FROM).write_bytes(spoiled)
    assert "There is a newer" in start(root)[0]
    assert (root / COPIES / NAME).read_bytes() == mine


def test_a_copy_that_is_no_notebook_any_more_stays(root):
    start(root)
    (root / COPIES / NAME).write_bytes(b"\xffnotes")
    ship(root, "3 + 3")
    assert (root / COPIES / NAME).read_bytes() == b"\xffnotes"


@pytest.mark.fault("lab", "two at once", sees="Each notebook gets one copy.")
def test_two_starts_at_once_make_each_copy_once(root):
    code = "import sys; from pathlib import Path; from perfkit.lab import *; "
    code += "refresh(Path(sys.argv[1]), Path(sys.argv[2]))"
    places = (str(root / "notebooks"), str(root / COPIES))
    running = [
        subprocess.Popen([sys.executable, "-c", code, *places], cwd=ROOT)
        for _ in range(4)
    ]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert notebooks(root) == [NAME, "01_next.ipynb"]
    known = json.loads((root / COPIES / lab._MADE_FROM).read_text())
    assert set(known) == {NAME, "01_next.ipynb"}


@pytest.mark.fault(
    "lab", "read-only", sees="perfkit asks for a folder that you can write to."
)
def test_where_nothing_can_be_written_the_sentence_names_the_remedy(root):
    (root / COPIES).touch()
    with pytest.raises(BadFileError) as caught:
        start(root)
    assert str(caught.value).startswith(f"Cannot write to {root / COPIES} (")
    assert f"make {root} a folder that you can write to" in str(caught.value)


@pytest.mark.parametrize("name", ["README.md", "pictures/step.svg", "photos.py"])
def test_what_the_notebooks_need_comes_along_and_an_edited_one_stays(root, name):
    shipped, mine = root / "notebooks" / name, root / COPIES / name
    shipped.parent.mkdir(exist_ok=True)
    for text in ("BATCH = 8\n", "BATCH = 4\n"):
        shipped.write_text(text)
        start(root)
        assert mine.read_text() == text
    mine.write_text("BATCH = 64\n")
    assert start(root) == ()
    shipped.write_text("BATCH = 2\n")
    assert f"There is a newer {name}" in start(root)[0]
    assert mine.read_text() == "BATCH = 64\n"
