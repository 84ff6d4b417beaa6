"""Everything that a document is shown as, and what none of it may hold."""

import re
from unittest import mock
from xml.etree import ElementTree

from perfkit.findings.account import Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.page import findings_page
from perfkit.findings.profile import Profile
from perfkit.findings.record import Finding
from perfkit.findings.report import in_text
from perfkit.panel import view
from perfkit.questions import gallery
from tests.findings.page.pages import POLICY, Page, problems

# What a terminal or a reader's eye would obey in place of showing it.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def show(found):
    """Show a document in every way; look at all of it."""
    drawn, draw = {}, gallery.chart

    # To draw takes longest, and a chart is the same wherever it stands.
    def chart(document, kind=""):
        key = id(document), kind
        drawn[key] = drawn.get(key) or draw(document, kind)
        return drawn[key]

    with mock.patch.object(gallery, "chart", chart):
        is_drawn = isinstance(found, Finding | Diagnosis)
        kinds = gallery.kinds(found) if is_drawn else ()
        figures = [gallery.chart(found, kind) for kind in kinds]
        for figure in figures:
            ElementTree.fromstring(figure.svg)
        texts = [repr(found), in_text(found.report, in_full=True)]
        texts += [figure.alt for figure in figures]
        parts = [found._repr_html_(), *(figure.svg for figure in figures)]
        if isinstance(found, Finding):
            assert len(found.table()) >= len({t.variant for t in found.timings})
            parts += [view.static_html("?", "perfkit.run", found), view.charts(found)]
        elif isinstance(found, Profile):
            assert len(found.ops()) == len(found.table)
        is_page = isinstance(found, Finding | Diagnosis | Account)
        check(texts, parts, [findings_page([found])] if is_page else [])


def check(texts, parts, pages):
    """Nothing in texts, pieces of HTML and whole pages may run, load or be obeyed."""
    for text in [*texts, *parts, *pages]:
        assert not _OBEYED.search(text), repr(_OBEYED.search(text))
    for html in [*(POLICY + part for part in parts), *pages]:
        assert problems(html) == []
    for html in pages:
        identities = [a["id"] for _, a in Page(html).elements if "id" in a]
        assert len(identities) == len(set(identities))
