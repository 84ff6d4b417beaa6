"""Write README's example anew: its picture and every number beside it.

Run from a checkout: ``python benchmarks/first_answer.py``. Both come from the recording
that comes along; ``python benchmarks/record.py data-pipeline --budget 90`` makes it, on
a machine that does nothing else.
"""

from __future__ import annotations

import re
import statistics
import sys
import textwrap
from pathlib import Path

import perfkit
from perfkit import units
from perfkit.findings.standing import measurement
from perfkit.questions.replay import BROUGHT

ROOT = Path(__file__).resolve().parents[1]
FINDING = BROUGHT / "data-pipeline.json"
PICTURE = ROOT / "docs" / "first-answer.svg"
README = ROOT / "README.md"
_PLACE = re.compile(r"(?<=<!-- first answer -->\n).*(?=\n<!-- -->)", re.DOTALL)


def main() -> int:
    """Draw, and write the words."""
    finding = perfkit.load(FINDING)
    perfkit.chart(finding).save(PICTURE)
    README.write_text(_PLACE.sub(lambda _: text(finding), README.read_text()))
    return 0


def text(finding):
    """What README says of the finding, as Markdown."""
    winner = finding.verdict.winner
    found = measurement(finding).compare(winner, finding.baseline)
    rates = {timing.variant: timing.rate for timing in finding.timings}
    others = [v for v in finding.samples.get("cpu_other", ()) if v is not None]
    said = (
        f"*Recorded on {finding.machine.summary}, TensorFlow "
        f"{finding.machine.versions['tensorflow']}, with a budget of "
        f"{finding.budget_s:.0f} s, while other programs kept "
        f"{statistics.mean(others):.1f} cores busy. There, `{winner}` trained "
        f"{found.ratio:.2f} times as fast as the obvious code ({found.low:.2f} to "
        f"{found.high:.2f}): {units.rate(rates[winner], 'images')} instead of "
        f"{units.significant(rates[finding.baseline])}. On your machine another way "
        "may win, so perfkit measures. The run is in "
        f"`{FINDING.relative_to(ROOT)}`; `python benchmarks/first_answer.py` makes the "
        "picture and this text from it.*"
    )
    picture = (
        f"![Images per second of a training that is fed in several ways, each with its "
        f"95 % interval]({PICTURE.relative_to(ROOT)})"
    )
    return f"{picture}\n\n{textwrap.fill(said, 90, break_on_hyphens=False)}"


if __name__ == "__main__":
    sys.exit(main())
