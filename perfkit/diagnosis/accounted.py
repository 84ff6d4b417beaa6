"""What an account adds to a diagnosis: where the seconds go, beside the swaps."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.account import SET_UP, Account, Tip
from perfkit.findings.account_report import warnings
from perfkit.findings.diagnosis import Cause, Diagnosis, without_line
from perfkit.findings.record import Verdict
from perfkit.findings.text import as_sentence

if TYPE_CHECKING:
    from perfkit.measure.statistics import Comparison, Sure

# Why none was tried, among the causes that were not tested.
NO_CHANGES = "changes"
# A change that was measured leads unless a line could bring so many times more.
_MORE = 1.2
# What an A/B test leaves to be had that is not worth a word.
_LITTLE = 1.05
_MOST = 2


def with_account(found: Diagnosis, said: Verdict) -> Verdict:
    """The verdict of a diagnosis, with what its account says where that says more."""
    account = found.account
    if account is None or not account.lines:
        return said
    if NO_CHANGES in found.untested:
        why = as_sentence(f"no change was tried: {found.untested[NO_CHANGES]}")
        return replace(
            account.verdict, much=f"{account.verdict.much} {why}", because=said.because
        )
    if not account.repeated_s:
        return said
    # Leaving all of a group out is no change that anybody can keep.
    changes = (one for one in found.best if one.change and not one.is_ceiling)
    tips, measured = left(found, account), next(changes, None)
    if tips and _leads(tips[0], measured, account):
        return _tip_first(found, account, tips, said if measured else None)
    if said.sure == "not known yet" and not measured:
        return replace(
            said,
            headline=account.verdict.headline,
            much=f"{said.headline} {said.much}".strip(),
        )
    if tips:
        also = "; ".join(f"{t.do} ({units.percent(t.share)})" for t in tips[:_MOST])
        parts = filter(None, [said.next, f"Profiled, not tested: {also}."])
        return replace(said, next="\n".join(parts))
    return said


def left(found: Diagnosis, account: Account) -> list[Tip]:
    """The tips of an account that no A/B test has refuted."""
    return [tip for tip in account.tips if _most(found, tip) >= _LITTLE]


def _most(found: Diagnosis, tip: Tip) -> float:
    """How many times as fast a training may be at most without what a tip is about."""
    most = 1 / max(1e-3, 1 - tip.share)
    compared = _tested(found, tip)
    if compared is not None and compared.is_judged:
        most = min(most, compared.high)
    return most


def _tested(found: Diagnosis, tip: Tip) -> "Comparison | None":
    """The change that leaves out what a tip is about; None where none was measured."""
    if tip.group:
        return found.compared(tip.group)
    account = found.account
    if account is None or len(tip.lines) != 1:
        return None
    line = account.lines[tip.lines[0]]
    name = without_line(found.training, line.file, line.line, line.cell)
    return found.compared(name)


def _leads(tip: Tip, measured: Cause | None, account: Account) -> bool:
    """Whether a tip is about more of the whole script than the best change is."""
    if measured is None:
        return True
    # A change is measured in steps, which may be little of what the script does.
    steps = 1 - account.share(account.kinds[SET_UP])
    whole = 1 / (1 - steps * (1 - 1 / max(1.0, measured.speedup.estimate)))
    return 1 / max(1e-3, 1 - tip.share) > _MORE * whole


def _tip_first(
    found: Diagnosis, account: Account, tips: list[Tip], said: Verdict | None
) -> Verdict:
    tip, *others = tips
    compared = _tested(found, tip)
    much, interval = tip.means, account.verdict.interval
    sure: Sure = "profiled"
    if compared is not None and compared.verdict == "faster" and compared.ends:
        much += (
            f" A/B tested: without all of it the training would run "
            f"{units.times(compared.ratio)} times as fast."
        )
        sure, interval = compared.sure, compared.ends
    return Verdict(
        headline=f"{tip.do}.",
        much=much,
        sure=sure,
        interval=interval,
        # Those of its own verdict hold what its first tip may cost.
        warnings=tuple(filter(None, [tip.mind, *warnings(account)]))[:2],
        next="\n".join(_next(tip, others, said)),
    )


def _next(tip: Tip, others: list[Tip], said: Verdict | None) -> Iterator[str]:
    if tip.fix:
        yield f"Try: {tip.fix}."
    if said is not None:
        yield f"A/B tested: {said.headline} {said.much}"
    if others:
        also = "; ".join(f"{t.do} ({units.percent(t.share)})" for t in others[:_MOST])
        yield f"Profiled, not tested: {also}."
