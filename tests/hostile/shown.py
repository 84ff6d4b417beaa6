"""Everything that a document is shown as, and what none of it may hold."""

import re
from xml.etree import ElementTree

from perfkit.account import files
from perfkit.export.page import findings_page
from perfkit.findings import reading
from perfkit.findings.reading import parse
from perfkit.findings.report import in_text
from perfkit.gallery import chart, kinds
from perfkit.machines import record as machines_passport
from perfkit.machines.report import preview
from perfkit.panel import view
from perfkit.profiling import profile as profiling_profile
from tests.export.pages import POLICY, Page, problems

# What a terminal or a reader's eye would obey in place of showing it.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def finding(data):
    """Read a finding and show it in every way.

    Raises:
        BadFileError: It is none.
    """
    found = parse(data, "x.json")
    assert len(found.table()) >= len({t.variant for t in found.timings})
    parts = [view.static_html("?", (), found), view.charts(found)]
    return _shown(found, found, parts=parts, pages=[findings_page([found])])


def diagnosis(data):
    """The same of a diagnosis."""
    found = reading.parse_diagnosis(data, "x.json")
    return _shown(found, found.finding, pages=[findings_page([found])])


def account(data):
    """The same of an account."""
    found = files.parse(data, "x.json")
    return _shown(found, pages=[findings_page([found])])


def passport(data):
    """The same of a passport."""
    found = machines_passport.parse(data, "x.json")
    return _shown(found, texts=[preview(found, len(data))])


def profile(data):
    """The same of a profile."""
    found = profiling_profile.parse(data, "x.json")
    assert len(found.ops()) == len(found.table)
    return _shown(found, found)


def _shown(found, drawn=None, *, texts=(), parts=(), pages=()):
    """Look at what is shown of every kind of document, and at what else is."""
    figures = [chart(drawn, kind) for kind in kinds(drawn)] if drawn else []
    for figure in figures:
        ElementTree.fromstring(figure.svg)
    texts = [repr(found), in_text(found.report, whole=True), *texts]
    texts += [figure.alt for figure in figures]
    parts = [found._repr_html_(), *parts, *(figure.svg for figure in figures)]
    check(texts, parts, pages)
    return found


def check(texts, parts, pages):
    """Nothing in them may run, load or be obeyed.

    Args:
        texts: As a terminal prints them.
        parts: Pieces of HTML.
        pages: Whole ones.
    """
    for text in [*texts, *parts, *pages]:
        assert not _OBEYED.search(text), repr(_OBEYED.search(text))
    for html in [*(POLICY + part for part in parts), *pages]:
        assert problems(html) == []
    for html in pages:
        identities = [a["id"] for _, a in Page(html).elements if "id" in a]
        assert len(identities) == len(set(identities))
