"""What the machines of a class answered: of each claim, how many say what."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfkit.experiments.replay import read_all
from perfkit.findings.record import Finding
from perfkit.findings.report import Table
from perfkit.findings.reports import TYPED
from perfkit.findings.standing import standings
from perfkit.findings.store import load_finding
from perfkit.findings.text import plain

# What was asked, what is held against what.
Claim = tuple[str, str, str]
_SAID = ("faster", "slower", "no difference shown", "too noisy to say")
_NAME = 80


def table(claims: Mapping[Claim, Counter[str]]) -> Table:
    """Lay out how many machines say what of each claim."""
    return Table(
        "What the machines answered",
        (
            *("asked", "is this", "faster than this?"),
            *("yes, faster", "no, slower", "no difference", "not known"),
        ),
        tuple(
            (*claim, *(str(said[answer]) for answer in _SAID))
            for claim, said in claims.items()
        ),
    )


def claims_in(folder: Path) -> dict[Claim, Counter[str]]:
    """Count the answers that lie in the sub-folders of a class, a machine each.

    A machine that asked twice counts with its newest run. Recordings that were shown in
    place of a run are no answers.
    """
    found: dict[Claim, Counter[str]] = defaultdict(Counter)
    for machine in sorted(path for path in folder.iterdir() if path.is_dir()):
        said = dict[Claim, str]()
        for finding in sorted(_findings(machine), key=lambda one: one.recorded):
            said |= dict(_said(finding))
        for claim, answer in said.items():
            found[claim][answer] += 1
    return dict(found)


def _findings(machine: Path) -> Iterator[Finding]:
    # A diagnosis is about a training of one's own, and no claim that others share.
    for finding in read_all(machine, load_finding):
        if not (finding.replayed or finding.ended_early):
            yield finding


def _said(finding: Finding) -> Iterator[tuple[Claim, str]]:
    asked = _asked(finding)
    for standing in standings(finding):
        held = standing.comparison
        if held and not standing.is_limit:
            one, other = plain(held.variant, _NAME), plain(held.baseline, _NAME)
            yield (asked, one, other), held.verdict


def _asked(finding: Finding) -> str:
    """What was asked, with what makes it another question."""
    if typed := finding.parameters.get(TYPED):
        return plain(str(typed), _NAME)
    set_to = (f"{name}={value}" for name, value in finding.parameters.items() if value)
    # How it was set is part of what was asked: other sizes, another answer.
    return plain(f"{finding.experiment} ({', '.join(set_to)})", 2 * _NAME)
