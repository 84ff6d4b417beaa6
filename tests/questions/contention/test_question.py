import pickle
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from perfkit.engine.trial import REFUSED, Limits, Note
from perfkit.findings import store
from perfkit.findings.load import MEANT
from perfkit.questions import contention, gallery
from perfkit.questions.contention import Contention, loads
from perfkit.questions.contention.loads import LOADS, PIPELINES
from perfkit.questions.shared import benchmark
from tests.engine.trials import launched, ticks_of, until_ticks
from tests.questions.disturbed import ALL, SHOWS, found, run
from tests.questions.races import sayings

verdict = sayings("contention")


def moved(measured, variant):
    return Contention().result(measured).moved(variant)


def test_loads_that_this_machine_cannot_have_are_refused_with_a_sentence(monkeypatch):
    config = SimpleNamespace(list_physical_devices=lambda kind: [])
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    monkeypatch.setattr(benchmark, "make", lambda folder: iter(()))
    monkeypatch.setattr(benchmark, "forgets", lambda files: False)
    meant, note = Contention().prepare()
    assert meant == Note(MEANT, True)
    assert note.name == REFUSED
    assert set(note.value) == {"gpu product", "disk reader"}


def test_neither_nothing_nor_what_came_by_in_one_round_alone_is_a_sign():
    measured = run(("quiet", "mystery"))
    assert moved(measured, "mystery") == {}
    first = next(t for t in measured.trials if t.variant == "mystery")
    until = first.started_s + first.wall_s
    seen = zip(measured.samples["t"], measured.samples["cpu_other"], strict=True)
    visited = tuple(4.0 if first.started_s < t < until else b for t, b in seen)
    samples = measured.samples | {"cpu_other": visited}
    assert moved(replace(measured, samples=samples), "mystery") == {}


def test_the_numbers_are_those_of_the_samples_and_the_ticks_of_each_trial():
    measured = run(("quiet", "sleeping pipeline"), noise=0.0)
    rounds = Contention().result(measured).signs["sleeping pipeline"]
    assert {name: numbers["1"] for name, numbers in rounds.items()} == {
        "a step": pytest.approx(0.040),
        "waiting for input": pytest.approx(0.48),
        "other programs": pytest.approx(0.05),
        "CPU time of a step": pytest.approx(0.8 * 0.040),
        "memory of others": pytest.approx(2.0e9 - 2.5e8),
        "others read": pytest.approx(1e4),
    }
    # What the training itself reads is not read by others.
    own = {"disk_read": 3e8, "disk_read_trial": 3e8}
    measured = run(("quiet", "mystery"), shows={"quiet": own, "mystery": own})
    read = Contention().result(measured).rounds(contention.READ, "mystery")
    assert {*read.values()} == {0.0}
    # A sample that reaches into another trial counts for none.
    measured = run(("quiet", "cpu burners"), rounds=1, noise=0.0)
    others = Contention().result(measured).rounds(contention.OTHERS, "quiet")
    assert others == {"1": pytest.approx(0.05)}


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("cpu burners", {contention.OTHERS}),
        ("memory bandwidth", {contention.OTHERS, contention.CPU_TIME, contention.HELD}),
        (
            "disk reader",
            {
                contention.OTHERS,
                contention.CPU_TIME,
                contention.WAITING,
                contention.READ,
            },
        ),
        ("gpu product", {contention.OTHERS, contention.BUSY}),
        ("sleeping pipeline", {contention.WAITING}),
        ("decoding pipeline", {contention.WAITING, contention.CPU_TIME}),
    ],
)
def test_each_slow_down_moves_signs_of_its_own(name, moves):
    measured = run(("quiet", name))
    assert set(moved(measured, name)) == moves
    rows = {fact.label for fact in verdict(measured).facts}
    assert rows == {f"{name}: {sign.name}" for sign in moves}


@pytest.mark.parametrize("samples", [{}, {"t": (None, None)}])
def test_without_samples_the_steps_still_tell_their_part(samples):
    untold = replace(run(("quiet", "sleeping pipeline")), samples=samples)
    assert set(moved(untold, "sleeping pipeline")) == {contention.WAITING}


def test_the_worst_load_is_named_and_what_may_cost_as_much_is_warned_of():
    names = ("quiet", "cpu burners", "disk reader")
    found = verdict(run(names, shows={"cpu burners": {"step": 0.060}}))
    assert found.headline == "Programs that take the cores slow this training most."
    assert (found.sure, found.interval[:6]) == ("sure", "2.9 to")
    assert (found.winner, found.warnings) == ("", ())
    noisy = {"cpu burners": {"step": 0.060}, "disk reader": {"step": 0.053}}
    found = verdict(run(names, shows=noisy, noise=0.15))
    assert found.warnings == ('"disk reader" may cost as much.',)
    busy = verdict(run(ALL[:2], shows={"quiet": {"cpu_other": 0.7}}))
    assert "0.70 cores busy even during" in busy.warnings[0]


def test_no_cost_is_claimed_where_none_is_shown_and_noise_is_said_to_be_noise():
    same = {"disk reader": {"step": 0.0201, "wait": 0.05}}
    found = verdict(run(("quiet", "disk reader"), shows=same))
    assert found.headline == "None of these is shown to cost anything."
    assert (found.sure, found.next) == ("sure", "")
    slow = {"disk reader": {"step": 0.023}}
    found = verdict(run(("quiet", "disk reader"), shows=slow, noise=0.4))
    assert found.sure == "not known yet"
    # Not to end those that took cores, as these loads did.
    assert found.next.startswith("Give it more seconds")
    found = verdict(run(("quiet", "mystery"), shows={"mystery": {"step": 0.040}}))
    assert found.headline.startswith("Something slows this")
    assert (found.sure, found.facts) == ("sure", ())


def mystery(secret, number):
    shows = {"mystery": SHOWS[secret]}
    return found(run(("quiet", "mystery"), shows=shows), mystery=number)


def told(number):
    """What the trial of a mystery is made to do, learnt from the variant itself."""
    variant = Contention(mystery=number).make_variants()["mystery"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "train", lambda batch, load, processes: load.name)
        return variant.work()


def test_a_mystery_opens_to_the_truth_for_every_number():
    measured = run(("quiet", "mystery"), rounds=2)
    hidden = {number: told(number) for number in range(1, 200)}
    assert {number: contention.sealed(number) for number in hidden} == hidden
    for truth, number in {truth: number for number, truth in hidden.items()}.items():
        text = Contention.reveal(found(measured, mystery=number))
        assert text.startswith(f'It was "{truth}".')
    # Each of them comes up.
    assert {*hidden.values()} == {"cpu burners", "memory bandwidth", *PIPELINES}


def test_neither_files_nor_charts_nor_variants_of_mysteries_tell_them_apart(tmp_path):
    numbers = {told(number): number for number in range(1, 30)}
    assert len(numbers) == 4
    seen = []
    for secret, number in numbers.items():
        made = mystery(secret, number)
        path = store.save(made, tmp_path)
        truth, *moves = Contention.reveal(store.load(path)).splitlines()
        assert truth == f'It was "{secret}".'
        assert all(" when quiet" in sign for sign in moves)
        assert moves
        figures = [gallery.chart(made, kind) for kind in gallery.kinds(made)]
        variant = Contention(mystery=number).make_variants()["mystery"]
        assert pickle.loads(pickle.dumps(variant)).name == "mystery"
        texts = [path.read_text(), path.name, variant.changes]
        texts += [figure.svg + figure.alt for figure in figures]
        assert not any(name in text for name in LOADS for text in texts)
        seen.append((made.verdict.next, {t.variant for t in made.trials}, made.notes))
    assert all(other == seen[0] for other in seen)


@pytest.mark.parametrize("name", ["quiet", "cpu burners", *PIPELINES])
def test_every_variant_really_trains_and_tells_what_it_waits(name):
    running = launched().start(Contention().make_variants()[name].work, 1, Limits())
    # By then a slow pipeline knows the usual step.
    ticks = ticks_of(until_ticks(running, 8))
    running.kill("completed", "")
    assert ticks[0][3] == "set-up"
    assert {(examples, *parts) for _, examples, parts, _ in ticks[1:]} == {
        (32, "input")
    }
