"""Findings as one page, and what all pages share: their frame, their look."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import perfkit
from perfkit.export.compact import compact
from perfkit.export.finding import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from perfkit.findings.store import Recorded

TEMPLATES = Path(__file__).parent / "templates"
NAME = "perfkit"


@functools.cache
def environment() -> Environment:
    """The templates; whatever is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES / NAME),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["version"] = perfkit.__version__
    return made


def findings_page(findings: Sequence[Recorded]) -> str:
    """Lay one or several findings or diagnoses out as a page."""
    template = environment().get_template("findings.html.j2")
    return compact(template.render(findings=[shown(finding) for finding in findings]))
