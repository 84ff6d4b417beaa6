"""What a machine's spread is learnt from, and whether intervals keep their word."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from perfkit.engine import spread, statistics
from perfkit.engine.spread import NOTE, Spread
from perfkit.engine.steady import Steady


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setattr(spread, "_path", lambda: tmp_path / "state" / "spread.json")


@dataclass
class Machine:
    """Runs on a machine whose spreads, as standard deviations of logs, are known.

    ``wild`` is that of one variant's processes, ``drift`` that of what a process gains
    from turn to turn. Something slows a process down for its round as often as
    ``disturbed`` says. Baseline and control come on top of ``variants``.
    """

    seed: int = 0
    processes: float = 0.02
    turns: float = 0.06
    rounds: int = 2
    variants: int = 6
    wild: float = 0.0
    disturbed: float = 0.0
    drift: float = 0.0

    def __post_init__(self):
        self.draw = np.random.default_rng(self.seed)

    def run(self):
        """The rounds of each comparison; every second variant is 15 % slower."""
        scale = np.exp(self.draw.normal(0, 0.3, 2 + self.variants))
        deviations = self.processes * scale
        if self.wild:
            deviations[-1] = self.wild
        told = [[] for _ in scale]
        for _ in range(self.rounds):
            spells = self.draw.normal(0, 0.1, self.draw.integers(2, 9))
            parts = [
                self.trial(-np.log(1.15) * is_slow(number), deviation, spells)
                for number, deviation in enumerate(deviations)
            ]
            for number, part in enumerate(parts):
                told[number].append((part, parts[0]))
        return [
            statistics.rounds(str(number), "0", pairs, alike=number == 1)
            for number, pairs in enumerate(told)
            if number
        ]

    def trial(self, log, deviation, spells):
        count, draw = len(spells), self.draw
        log += draw.normal(0, deviation)
        log -= 0.15 * (draw.random() < self.disturbed)
        drift = draw.normal(0, self.drift) * np.arange(count)
        rate = 1000 * np.exp(log + drift + spells + draw.normal(0, self.turns, count))
        seconds, keys = np.full(count, 0.2), tuple(range(count))
        return Steady(keys, rate * seconds, seconds, 0.1, 0.2, 0.0)

    def compared(self, runs, known=0):
        """Comparisons of each of so many runs, which know of others before them."""
        machine = [statistics.variances(self.run()) for _ in range(known)]
        for _ in range(runs):
            every = self.run()
            usual = statistics.usual(Spread.learnt(machine[-30:]), every)
            floor = statistics.noise_floor(every[0], usual)
            machine += [statistics.variances(every)] * bool(known)
            others = len(every) - 1
            yield [statistics.comparison(o, usual, floor, others) for o in every]


def is_slow(number):
    return number > 1 and number % 2 == 1


def flat(runs):
    return [one for run in runs for one in run]


def shares(found):
    """Of intervals that hold the truth, of copies called different, of 15 % found."""
    truth = [1 / 1.15 if is_slow(int(c.variant)) else 1.0 for c in found]
    held = [c.low <= true <= c.high for c, true in zip(found, truth, strict=True)]
    copies = [not c.is_noise for c in found if not is_slow(int(c.variant))]
    slow = [c.verdict == "slower" for c in found if is_slow(int(c.variant))]
    return np.mean(held), np.mean(copies), np.mean(slow or [0.0])


@pytest.mark.parametrize("known", [0, 15])
@pytest.mark.parametrize(
    "machine",
    [
        Machine(processes=0.01),
        Machine(rounds=1, processes=0.03),
        Machine(rounds=3, drift=0.02),
        Machine(rounds=6),
        Machine(rounds=3, disturbed=0.05),
        Machine(rounds=3, wild=0.15),
        Machine(variants=2),
        Machine(rounds=1, processes=0.08, variants=8),
    ],
    ids=str,
)
def test_intervals_hold_the_truth_and_copies_are_not_called_different(machine, known):
    runs = list(machine.compared(80, known))
    held, copies, _ = shares(flat(runs))
    # A run's comparisons share a baseline, so that these are known to three percent.
    assert held >= 0.90
    assert copies <= 0.06
    # The largest of many differences is large by chance: that stands out in few runs.
    lucky = [
        c for run in runs for c in run if not (c.is_noise or is_slow(int(c.variant)))
    ]
    assert sum(c.stands_out for c in lucky) <= 0.05 * len(runs)


def test_a_machine_that_is_known_is_more_readily_believed():
    fresh, known = (flat(Machine().compared(80, number)) for number in (0, 15))
    assert shares(known)[2] > shares(fresh)[2] + 0.05
    narrower = np.median([c.half_width for c in known])
    assert narrower < 0.85 * np.median([c.half_width for c in fresh])
    # Three rounds on a known machine find fifteen percent.
    held, _, slow = shares(flat(Machine(rounds=3).compared(80, 15)))
    assert slow >= 0.9
    assert held <= 0.99


def test_the_scale_and_how_sure_it_is_are_found_again():
    draw = np.random.default_rng(0)

    def runs(freedom):
        scales = 3.0 * freedom / draw.chisquare(freedom, 400)
        return [[(scale * draw.chisquare(2) / 2, 2)] for scale in scales]

    alike, apart = Spread.learnt(runs(8)), Spread.learnt(runs(3))
    assert alike.scale == pytest.approx(3.0, rel=0.2)
    assert alike.freedom == pytest.approx(8, abs=2)
    assert apart.freedom == pytest.approx(3, abs=1)
    # Of too little that was seen nothing is known.
    assert Spread.learnt([]) == Spread()
    assert Spread.learnt([[(1.0, 1)] * 9]) == Spread()
    # None is believed to differ by less than any does.
    assert Spread.learnt([[(0.0, 2)] * 40]).scale == 1.0


def test_what_runs_have_seen_is_kept_for_those_to_come():
    assert spread.of_this_machine() == Spread()
    for _ in range(40):
        spread.remember([(4.0, 2), (5.0, 2)])
    assert spread.of_this_machine().scale > 3
    path = spread._path()
    assert len(json.loads(path.read_bytes())) == 30
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[" * 10_000,
        '{"scale": 2}',
        '[[["a", 2]]]',
        "[[[NaN, 2]]]",
        "[[[-1, 2]]]",
        "[[[1e300, 2]]]",
        "[[[1, 0]]]",
        "[[[1, Infinity]]]",
        f"[{'[[1, 2]],' * 50_000}[[1, 2]]]",
    ],
    ids=lambda text: text[:12],
)
def test_a_file_that_makes_no_sense_is_ignored_and_written_anew(text):
    spread._path().parent.mkdir(parents=True, exist_ok=True)
    spread._path().write_text(text)
    assert spread.of_this_machine() == Spread()
    spread.remember([(1.0, 2)])
    assert json.loads(spread._path().read_bytes()) == [[[1.0, 2]]]


@pytest.mark.fault(
    "findings", "home", sees="The run goes on, but later runs learn nothing from it."
)
def test_where_nothing_can_be_written_a_run_goes_on():
    spread._path().parent.write_text("a file where the folder would be")
    spread.remember([(1.0, 2)])
    assert spread.of_this_machine() == Spread()


@pytest.mark.parametrize(
    "note",
    [
        *(None, 3, {"scale": 2}, {"scale": "x", "freedom": 2}),
        *({"scale": 0.0, "freedom": -1}, {"scale": float("nan"), "freedom": 4}),
    ],
    ids=repr,
)
def test_a_note_that_makes_no_sense_is_that_of_an_unknown_machine(note):
    assert Spread.from_notes({NOTE: note}) == Spread()
    # A sound one gives the same spread again.
    known = Spread(scale=1.5, freedom=7.0)
    assert Spread.from_notes(json.loads(json.dumps(known.as_note()))) == known
    assert Spread().as_note() == {}
