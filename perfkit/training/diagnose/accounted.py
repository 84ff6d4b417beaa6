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
    from perfkit.engine.statistics import Comparison, Sure

# Why none was tried, among the causes that were not tested.
NO_CHANGES = "changes"
# A change that was measured leads unless a line could bring so many times more.
_LEADS_BY = 1.2
# What an A/B test leaves to be had that is not worth a word.
_MIN_SPEEDUP = 1.05
_MAX_TIPS = 2


def with_account(diagnosis: Diagnosis, verdict: Verdict) -> Verdict:
    """The verdict of a diagnosis, with what its account says where that says more."""
    account = diagnosis.account
    if account is None or not account.lines:
        return verdict
    if NO_CHANGES in diagnosis.untested:
        reason = as_sentence(f"no change was tried: {diagnosis.untested[NO_CHANGES]}")
        text = f"{account.verdict.much} {reason}"
        return replace(account.verdict, much=text, because=verdict.because)
    if not account.repeated_s:
        return verdict
    # Leaving all of a group out is no change that anybody can keep.
    changes = (c for c in diagnosis.best if c.change and not c.ceiling)
    tips, measured = open_tips(diagnosis, account), next(changes, None)
    if tips and _leads(tips[0], measured, account):
        return _tip_first(diagnosis, account, tips, verdict if measured else None)
    if verdict.sure == "not known yet" and not measured:
        return replace(
            verdict,
            headline=account.verdict.headline,
            much=f"{verdict.headline} {verdict.much}".strip(),
        )
    if tips:
        parts = filter(None, [verdict.next, _profiled(tips)])
        return replace(verdict, next="\n".join(parts))
    return verdict


def open_tips(diagnosis: Diagnosis, account: Account) -> list[Tip]:
    """The tips of an account that no A/B test has refuted."""
    return [tip for tip in account.tips if _max_speedup(diagnosis, tip) >= _MIN_SPEEDUP]


def _max_speedup(diagnosis: Diagnosis, tip: Tip) -> float:
    """How many times as fast a training may be at most without what a tip is about."""
    speedup = 1 / max(1e-3, 1 - tip.share)
    compared = _comparison_of(diagnosis, tip)
    if compared is not None and compared.is_judged:
        speedup = min(speedup, compared.high)
    return speedup


def _comparison_of(diagnosis: Diagnosis, tip: Tip) -> "Comparison | None":
    """The change that leaves out what a tip is about; None where none was measured."""
    if tip.group:
        return diagnosis.compared(tip.group)
    account = diagnosis.account
    if account is None or len(tip.lines) != 1:
        return None
    line = account.lines[tip.lines[0]]
    name = without_line(diagnosis.training, line.file, line.line, line.cell)
    return diagnosis.compared(name)


def _leads(tip: Tip, measured: Cause | None, account: Account) -> bool:
    """Whether a tip is about more of the whole script than the best change is."""
    if measured is None:
        return True
    # A change is measured in steps, which may be little of what the script does.
    steps = 1 - account.share(account.kinds[SET_UP])
    script_speedup = 1 / (1 - steps * (1 - 1 / max(1.0, measured.speedup.estimate)))
    return 1 / max(1e-3, 1 - tip.share) > _LEADS_BY * script_speedup


def _tip_first(
    diagnosis: Diagnosis, account: Account, tips: list[Tip], verdict: Verdict | None
) -> Verdict:
    tip, *other_tips = tips
    compared = _comparison_of(diagnosis, tip)
    effect, interval = tip.means, account.verdict.interval
    sure: Sure = "profiled"
    if compared is not None and compared.verdict == "faster" and compared.ends:
        effect += (
            f" A/B tested: without all of it the training would run "
            f"{units.times(compared.ratio)} times as fast."
        )
        sure, interval = compared.sure, compared.ends
    return Verdict(
        headline=f"{tip.do}.",
        much=effect,
        sure=sure,
        interval=interval,
        # Those of its own verdict hold what its first tip may cost.
        warnings=tuple(filter(None, [tip.mind, *warnings(account)]))[:2],
        next="\n".join(_next(tip, other_tips, verdict)),
    )


def _next(tip: Tip, tips: list[Tip], verdict: Verdict | None) -> Iterator[str]:
    if tip.fix:
        yield f"Try: {tip.fix}."
    if verdict is not None:
        yield f"A/B tested: {verdict.headline} {verdict.much}"
    if tips:
        yield _profiled(tips)


def _profiled(tips: list[Tip]) -> str:
    named = (f"{tip.do} ({units.percent(tip.share)})" for tip in tips[:_MAX_TIPS])
    return f"Profiled, not tested: {'; '.join(named)}."
