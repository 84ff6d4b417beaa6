import errno
import os
import signal
import subprocess
import sys

import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.page import export
from tests.findings.made import finding
from tests.findings.page.books import book, code, printed, write
from tests.findings.page.pages import Page


@pytest.fixture
def saved(tmp_path):
    return store.save(finding(), tmp_path)


@pytest.fixture
def notebook(tmp_path):
    made = book("# Why?", code("print(6 * 7)", printed("42\n")))
    return write(made, tmp_path / "why.ipynb")


def test_a_page_goes_beside_its_file_or_where_it_is_told(saved, tmp_path, notebook):
    path = perfkit.export(store.load(saved))
    assert path == saved.with_suffix(".html")
    assert "prefetched is the fastest way here." in Page(path.read_text()).text
    path = export(finding(), tmp_path / "page.html")
    assert Page(path.read_text()).levels[0] == 1
    with pytest.raises(BadParameterError, match="not saved; give the page"):
        export(finding())
    path = export(notebook)
    assert path == notebook.with_suffix(".html")
    assert Page(path.read_text()).words("title") == ["Why?"]
    # The same sources make the same page anew.
    first = path.read_text()
    path.write_text("the old page")
    assert export(notebook).read_text() == first
    one, two = (export(saved, tmp_path / f"{n}.html").read_text() for n in (1, 2))
    assert one == two


def test_a_finding_takes_nothing_that_only_notebooks_take(saved):
    code = (
        "import sys; sys.modules |= dict.fromkeys(('nbconvert', 'nbformat', "
        "'traitlets')); import perfkit; perfkit.export(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(saved)], check=True)
    assert saved.with_suffix(".html").exists()


@pytest.mark.parametrize(
    ("sources", "place", "said"),
    [
        (["saved", "saved"], None, "needs a name"),
        ([], "page.html", "nothing to export"),
        (["saved", "notebook"], "page.html", "exactly one notebook"),
    ],
)
def test_what_makes_no_page_is_refused(sources, place, said, request, tmp_path):
    given = [request.getfixturevalue(name) for name in sources]
    with pytest.raises(BadParameterError, match=said):
        export(given, place and tmp_path / place)
    for other in (7, None, b"x", {"a": 1}):
        with pytest.raises((BadParameterError, BadFileError)):
            export(other, tmp_path / "page.html")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json", b"{", "cut off"),
        ("x.json", b'{"cells": []}', "not a finding"),
        ("x.ipynb", b"{", "not a notebook, or its end is missing"),
        ("x.ipynb", b"[]", "not a notebook"),
        ("x.ipynb", b'{"cells": []}', "not a notebook"),
        ("x.ipynb", b'{"nbformat": 4}', "not a valid notebook"),
        ("x.ipynb", b'{"nbformat": 4, "nbformat_minor": 5}', "not a valid notebook"),
        ("x.ipynb", b'{"nbformat": 2}', "notebook format 2"),
        ("x.ipynb", b'{"nbformat": 5}', "notebook format 5"),
        ("x.ipynb", b'{"nbformat": "x"}', "notebook format x"),
        ("x.ipynb", b'{"nbformat": ' + b"[" * 100_000, "not a notebook"),
    ],
)
def test_a_file_that_is_neither_is_told_in_one_sentence(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadFileError, match=said) as told:
        export(tmp_path / name)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("why.ipynb", "is the page's source"),
        ("linked.html", "is the page's source"),
        (".", "not a page's name"),
        ("page.json", "not a page's name"),
        ("folder.html", "not a page's name"),
        ("nowhere/page.html", "no folder"),
    ],
)
def test_a_page_is_not_put_where_it_does_not_belong(place, said, notebook):
    folder = notebook.parent
    (folder / "folder.html").mkdir()
    (folder / "linked.html").symlink_to(notebook)
    before = notebook.read_bytes()
    with pytest.raises(BadParameterError, match=said):
        export(notebook, folder / place)
    assert notebook.read_bytes() == before


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.ENOSPC, r"\(No space left on device\): free some space or choose anoth"),
        (errno.EMFILE, r"\(Too many open files\): close other programs, or allow more"),
    ],
)
@pytest.mark.fault(
    "export", "full disk, open files", sees="The old page stays; perfkit names a fix."
)
def test_a_page_that_cannot_be_written_leaves_the_old_one_and_no_rest(
    notebook, tmp_path, monkeypatch, number, todo
):
    target = tmp_path / "page.html"
    target.write_text("the old page")

    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadFileError, match=todo):
        export(notebook, target)
    assert target.read_text() == "the old page"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "why.ipynb"}


_IS_KILLED = """
import os, signal, sys
from perfkit.findings.page import export
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
export(sys.argv[1], sys.argv[2])
"""


@pytest.mark.fault("export", "SIGKILL", sees="The old page stays as it was.")
def test_a_page_whose_making_is_killed_leaves_the_old_one(saved, tmp_path):
    target = tmp_path / "page.html"
    target.write_text("the old page")
    command = [sys.executable, "-c", _IS_KILLED, str(saved), str(target)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert target.read_text() == "the old page"
