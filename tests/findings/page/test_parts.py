"""The small parts that pages are made of: code, prose, pictures."""

import base64
from pathlib import Path

import pytest

from perfkit.findings.page.clean import LARGEST_BYTES, NoPictureError, Pictures
from perfkit.findings.page.notebook import markdown, terminal
from tests.findings.page.books import PNG
from tests.findings.page.pages import Page

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("a\nb\n", "a\nb"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]8;;http://a.b\x1b\\b\x1b]8;;\x1b\\", "ab"),
        ("10%\r50%\r100%\nnext", "100%\nnext"),
        ("a\r\nb", "a\nb"),
        ("a\x00\x08\u202eb", "ab"),
        ("", ""),
    ],
)
def test_a_terminal_shows_what_is_left_of_what_was_written(written, seen):
    assert terminal(written) == seen


def test_of_a_long_output_the_beginning_and_the_end_are_kept():
    lines = terminal("\n".join(map(str, range(1000)))).split("\n")
    assert (lines[0], lines[-1]) == ("0", "999")
    (told,) = [line for line in lines if "left out" in line]
    assert len(lines) - 1 + int(told.split()[1].replace(",", "")) == 1000
    assert len(terminal("x" * 10**6)) < 3000


def test_a_formula_stays_as_it_was_typed():
    none = Pictures(Path())
    assert r"$\frac{1}{2}$" in markdown(r"$\frac{1}{2}$", none)
    assert "$$a &lt; b$$" in markdown("$$a < b$$", none)


def test_pictures_beside_the_notebook_are_taken_into_the_page(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "img" / "a b.png").write_bytes(base64.b64decode(PNG))
    (tmp_path / "c.svg").write_bytes(SVG)
    pictures = Pictures(tmp_path, {"d.png": {"image/png": PNG}})
    for address in ("img/a%20b.png", "./img/a%20b.png?x#y", "attachment:d.png"):
        assert pictures.uri(address) == f"data:image/png;base64,{PNG}", address
    assert base64.b64decode(pictures.uri("c.svg").partition(",")[2]) == SVG
    html = markdown("![A](img/a%20b.png)", pictures)
    img = {"src": f"data:image/png;base64,{PNG}", "alt": "A"}
    assert Page(html).all("img") == [img]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("missing.png", "not found"),
        ("../outside.png", "outside the notebook's folder"),
        ("link.png", "outside the notebook's folder"),
        ("{outside}", "outside the notebook's folder"),
        ("file://{outside}", "left out"),
        ("text.png", "cannot be read"),
        ("large.png", "too large"),
        (".", "not found"),
        ("a\x00b.png", "cannot be read"),
        ("attachment:none.png", "not attached"),
        ("http://a.example/x.png", "left out"),
        ("//a.example/x.png", "left out"),
        ("javascript:alert(1)", "left out"),
        ("data:image/png;base64,!!", "cannot be read"),
        ("data:text/html;base64,QQ==", "left out"),
        ("", "left out"),
    ],
)
def test_pictures_from_elsewhere_are_not(address, why, tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside.png"
    home.mkdir()
    outside.write_bytes(base64.b64decode(PNG))
    (home / "link.png").symlink_to(outside)
    (home / "text.png").write_text("hello")
    (home / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(LARGEST_BYTES))
    with pytest.raises(NoPictureError, match=why):
        Pictures(home).uri(address.format(outside=outside))
