"""Accounts made by hand, with seconds that are known."""

from dataclasses import replace

from perfkit.findings.account import Account, Call, Growth, Line, Retraced, Stage, Tip
from perfkit.findings.account_report import verdict
from perfkit.findings.record import Verdict
from tests.findings.made import MACHINE


def line(number=10, *, code="", calls=(), traces=(), **fields):
    """A line of a script; ``computing=3.0`` and the like are its seconds by kind.

    ``calls`` and ``traces`` have a name, how often and how many seconds each.
    """
    kinds = ("computing", "input", "python", "set_up", "waiting")
    names = {"python": "Python", "set_up": "set-up"}
    seconds = {names.get(k, k): fields.pop(k) for k in kinds if k in fields}
    return Line(
        **{"file": "train.py", "line": number, "code": code, "seconds": seconds}
        | fields,
        calls=tuple(Call(name=n, count=c, seconds=s) for n, c, s in calls),
        traces=tuple(Retraced(name=n, count=c, seconds=s) for n, c, s in traces),
    )


def account(*lines, tips=(), **fields):
    """An account of some lines, with its verdict; seconds elsewhere fill up to 10."""
    spent = sum(one.total_s for one in lines)
    known = {
        "training": "train.py",
        "recorded": "2025-03-14T09:26:53+01:00",
        "perfkit": "0.1.0",
        "machine": MACHINE,
        "wall_s": 30.0,
        "once_s": 4.0,
        "elsewhere_s": max(0.0, 10 - spent),
        "traced_s": 1.0,
        "looking_s": 2.0,
        "sampling_s": 0.3,
        "samples": 1000,
        "updates": 400,
    }
    made = Account(
        **known | fields, lines=lines, tips=tuple(tips), verdict=Verdict(headline="")
    )
    return replace(made, verdict=verdict(made))


def tip(cause="input", lines=(0,), share=0.5, **fields):
    known = {"do": "Read each file once", "means": "The model waits for files."}
    return Tip(cause=cause, lines=lines, share=share, **known | fields)


GROWTH = Growth(unit="epoch", each_bytes=5.02e6, low=4.6e6, high=5.41e6, ends=10)
HOT = line(
    12,
    code="model.fit(data)",
    computing=1.0,
    set_up=4.0,
    calls=[("predict", 300, 5.0)],
    traces=[("one_step", 9, 3.0)],
    parts=("layer dense Dense",),
)


def whole():
    """One with something in each of its fields."""
    others = [
        line(20 + n, code=f"step_{n}()", python=0.4 - n / 100, input=0.1, cell=0)
        for n in range(9)
    ]
    optimizer = line(
        40,
        code="optimizer='adam'",
        computing=0.6,
        operations=900.0,
        starting_s=0.4,
        parts=("optimizer adam",),
        types=(("AddV2", 3.0),),
        elements=200_000,
        backward=0.5,
    )
    hidden = line(50, code="data.map(f)", input=0.05, beside_s=4.0)
    return account(
        HOT,
        *others,
        optimizer,
        hidden,
        tips=[
            tip(fix="`model(x)`", mind="It returns a tensor.", group="without input"),
            tip("callback", (1, 2), 0.1, do="Save less often", means="It saves."),
        ],
        stages=(
            Stage(path="Iterator::Root::Filter", line=0, given=800, out=100),
            Stage(path="Iterator::Root::Filter::Range", out=800),
        ),
        epochs_s=(9.0, 3.0, 3.0),
        growth=replace(GROWTH, kept="traces", line=0),
        error="The training raised ValueError: lost",
        untraced="Another profiler runs.",
        text={"train.py#0": {"11": "# Fit it.", "12": "model.fit(data)"}},
        code="abc",
    )
