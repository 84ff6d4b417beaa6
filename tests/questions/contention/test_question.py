import os
import pickle
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from perfkit.engine.processes import fresh
from perfkit.engine.tick import REFUSED, Note
from perfkit.engine.trial import Limits
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.findings.load import MEANT
from perfkit.questions import gallery
from perfkit.questions.contention import Contention, loads, opened, signs
from perfkit.questions.contention.loads import LOADS, PIPELINES
from perfkit.questions.shared import benchmark
from perfkit.questions.shared import images as shared_images
from tests.charts.test_any_finding import check
from tests.charts.test_kinds import words
from tests.engine.trials import launched, ticks_of, until_ticks
from tests.questions.disturbed import ALL, SHOWS, found, run
from tests.questions.races import sayings

verdict, because = sayings("contention")


def moved(measured, variant):
    return signs.read(measured).moved(variant)


def suspects(measured, variant, fed="memory"):
    return signs.suspects(signs.read(measured), variant, fed)


def test_the_default_run_has_every_load_and_two_slow_pipelines_against_quiet():
    variants = Contention().make_variants()
    assert tuple(variants) == ALL
    assert {one.against for one in variants.values()} == {"quiet"}
    # A load shows in the samples of a trial that works in one go.
    assert not Contention.in_turns
    two = Contention(variants="disk reader").make_variants()
    assert list(two) == ["quiet", "disk reader"]


def test_loads_that_this_machine_cannot_have_are_refused_with_a_sentence(monkeypatch):
    config = SimpleNamespace(list_physical_devices=lambda kind: [])
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    monkeypatch.setattr(benchmark, "make", _nothing_made)
    monkeypatch.setattr(benchmark, "forgets", lambda files: False)
    meant, note = Contention().prepare()
    assert meant == Note(MEANT, True)
    assert note.name == REFUSED
    assert set(note.value) == {"gpu product", "disk reader"}
    assert "GPU" in note.value["gpu product"]
    assert "does not forget" in note.value["disk reader"]
    # Refused whatever it hides, so that nothing is told by it.
    monkeypatch.setattr(loads, "make", lambda: iter(()))
    _, note = Contention(mystery=7, fed="disk").prepare()
    assert set(note.value) == {"mystery"}
    # No other program is started for a pipeline.
    (note,) = Contention(variants="sleeping pipeline").prepare()
    assert note.name == REFUSED


def _nothing_made(folder):
    yield from ()
    return ("a file",)


def test_neither_nothing_nor_what_came_by_in_one_round_alone_is_a_sign():
    measured = run(("quiet", "mystery"))
    assert moved(measured, "mystery") == {}
    assert suspects(measured, "mystery") == ()
    first = next(t for t in measured.trials if t.variant == "mystery")
    until = first.started_s + first.wall_s
    seen = zip(measured.samples["t"], measured.samples["cpu_other"], strict=True)
    visited = tuple(4.0 if first.started_s < t < until else b for t, b in seen)
    samples = measured.samples | {"cpu_other": visited}
    assert moved(replace(measured, samples=samples), "mystery") == {}


def test_the_numbers_are_those_of_the_samples_and_the_ticks_of_each_trial():
    measured = run(("quiet", "sleeping pipeline"), noise=0.0)
    rounds = signs.read(measured).signs["sleeping pipeline"]
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
    assert {*signs.read(measured).rounds(signs.READ, "mystery").values()} == {0.0}
    # A sample that reaches into another trial counts for none.
    measured = run(("quiet", "cpu burners"), rounds=1, noise=0.0)
    others = signs.read(measured).rounds(signs.OTHERS, "quiet")
    assert others == {"1": pytest.approx(0.05)}


# On two cores: what others leave a training that is slowed, and what it leaves them.
BUSY = {"cpu_trial": 1.3, "cpu_other": 0.7}
NOT_QUIET = {
    "cpu burners": {"cpu_trial": 0.65, "cpu_other": 1.3},
    "memory bandwidth": {"cpu_trial": 0.9, "cpu_other": 1.1},
    "disk reader": {"cpu_other": 1.0},
    "gpu product": {"cpu_other": 1.2},
    "sleeping pipeline": {"cpu_trial": 0.7, "cpu_other": 0.7},
    "decoding pipeline": {"cpu_trial": 1.35, "cpu_other": 0.65},
}


def suspected(name, quiet=None, **shows):
    """What fits a slow-down that shows more than it usually does."""
    measured = run(("quiet", name), shows={"quiet": quiet or {}, name: shows})
    return suspects(measured, name)


@pytest.mark.parametrize("name", LOADS)
def test_every_slow_down_is_told_by_its_signs_on_a_quiet_machine_and_a_busy_one(name):
    assert suspected(name) == (name,)
    assert suspected(name, BUSY, **NOT_QUIET[name]) == (name,)


GREEDY = {"wait": 0.48, "cpu_trial": 0.7, "cpu_other": 1.3}


@pytest.mark.parametrize(
    ("quiet", "shown", "fits"),
    [
        # Burners that starve a good pipeline show just this.
        (BUSY, GREEDY, ("cpu burners", "sleeping pipeline")),
        # A hardware thread that shares its core needs more CPU time for the same work.
        ({}, {"cpu_trial": 1.0, "cpu_other": 1.0}, ("cpu burners", "memory bandwidth")),
        ({}, {"wait": 0.48, "cpu_trial": 1.05}, PIPELINES),
    ],
    ids=["greedy others", "two threads on a core", "computing"],
)
def test_what_two_slow_downs_show_alike_is_left_open(quiet, shown, fits):
    assert suspected("mystery", quiet, **{"step": 0.040} | shown) == fits


def test_what_is_held_or_read_beside_does_not_decide_alone():
    many = {"cpu_other": 30.0, "memory_used": 2.4e9}
    assert "cpu burners" in suspected("cpu burners", **many)
    measured = run(("quiet", "disk reader"))
    untold = {n: v for n, v in measured.samples.items() if not n.startswith("disk")}
    fits = suspects(replace(measured, samples=untold), "disk reader", "disk")
    assert "disk reader" in fits
    assert len(fits) > 1
    # Without samples the steps still tell their part.
    for samples in ({}, {"t": ()}, {"t": (None, None)}):
        untold = replace(run(("quiet", "sleeping pipeline")), samples=samples)
        assert set(moved(untold, "sleeping pipeline")) == {signs.WAITING}
        fits = suspects(untold, "sleeping pipeline")
        assert set(fits) == {"cpu burners", "memory bandwidth", *PIPELINES}


def test_the_worst_load_is_named_with_its_cost_its_signs_and_a_remedy():
    shows = {"cpu burners": {"step": 0.060}}
    found = verdict(run(("quiet", "cpu burners", "disk reader"), shows=shows))
    assert found.headline == "Programs that take the cores slow this training most."
    assert 'With "cpu burners" a step takes 3.0 times as long' in found.much
    assert (found.sure, found.interval[:6]) == ("sure", "2.9 to")
    facts = {fact.label: fact.value for fact in found.facts}
    cores = "1.20 cores, against 0.05 cores when quiet"
    assert facts["cpu burners: other programs"] == cores
    assert "nice -n 19" in found.next
    assert (found.winner, found.warnings) == ("", ())
    # What may cost as much, and a machine that was not quiet, are warned of.
    noisy = {"cpu burners": {"step": 0.060}, "disk reader": {"step": 0.053}}
    names = ("quiet", "cpu burners", "disk reader")
    found = verdict(run(names, shows=noisy, noise=0.15))
    assert "take the cores" in found.headline
    assert found.warnings == ('"disk reader" may cost as much.',)
    busy = verdict(run(ALL[:2], shows={"quiet": {"cpu_other": 0.7}}))
    assert "0.70 cores busy: on a free machine" in busy.warnings[0]


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("sleeping pipeline", "neither the training nor others use more cores"),
        ("decoding pipeline", "the training itself uses the cores"),
    ],
)
def test_a_slow_pipeline_is_told_from_a_busy_machine(name, who):
    said = because(run(("quiet", "cpu burners", name)))
    assert f'"{name}" is told from a busy machine: a step waits' in said
    assert who in said
    greedy = {"quiet": BUSY, name: {"cpu_trial": 0.7, "cpu_other": 1.3}}
    told = because(run(("quiet", "cpu burners", name), shows=greedy))
    assert "is told from" not in told


def test_no_cost_is_claimed_where_none_is_shown_and_noise_is_said_to_be_noise():
    same = {"disk reader": {"step": 0.0201, "wait": 0.05}}
    found = verdict(run(("quiet", "disk reader"), shows=same))
    assert "None of these is shown to slow this training" in found.headline
    assert (found.sure, found.next) == ("sure", "")
    assert any(fact.value.startswith("500 MB/s, against") for fact in found.facts)
    slow = {"disk reader": {"step": 0.023}}
    found = verdict(run(("quiet", "disk reader"), shows=slow, noise=0.4))
    assert found.sure == "not known yet"
    assert 'Of "disk reader" it is too noisy to say' in found.much
    # Not to end those that took cores, as these loads did.
    assert found.next.startswith("Give it more seconds")
    nothing = verdict(run(("quiet",)))
    assert (nothing.headline, nothing.much) == (found.headline, "")
    for step, said in ((0.014, "None of these is"), (0.040, "Something slows this")):
        found = verdict(run(("quiet", "mystery"), shows={"mystery": {"step": step}}))
        assert found.headline.startswith(said)
        assert (found.sure, found.facts) == ("sure", ())


def mystery(secret, number, fed="memory"):
    shows = {"mystery": SHOWS[secret]}
    return found(run(("quiet", "mystery"), shows=shows), mystery=number, fed=fed)


def told(number, fed):
    """What the trial of a mystery is made to do, learnt from the variant itself."""
    variant = Contention(mystery=number, fed=fed).make_variants()["mystery"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "train", lambda job: job)
        return variant.work().load.name


@pytest.mark.parametrize("fed", ["memory", "disk"])
def test_a_mystery_opens_to_the_truth_for_every_number(fed):
    measured = run(("quiet", "mystery"), rounds=2)
    hidden = {number: told(number, fed) for number in range(1, 200)}
    assert {number: signs.sealed(number, fed) for number in hidden} == hidden
    for truth, number in {truth: number for number, truth in hidden.items()}.items():
        text = opened(found(measured, mystery=number, fed=fed))
        assert text.startswith(f'It was "{truth}".')
    # Each of them comes up; without a disk to read, no reader can slow anything.
    reader = {"disk reader"} if fed == "disk" else {}
    expected = {"cpu burners", "memory bandwidth", *PIPELINES, *reader}
    assert {*hidden.values()} == expected
    often = [list(hidden.values()).count(name) for name in expected]
    assert min(often) > 0.6 * 200 / len(expected)


def test_neither_files_nor_charts_nor_variants_of_mysteries_tell_them_apart(tmp_path):
    for number in range(1, 12):
        secret = told(number, "memory")
        path = store.save(mystery(secret, number), tmp_path)
        assert opened(store.load(path)).startswith(f'It was "{secret}".')
        text = path.read_text() + path.name
        assert not any(name in text for name in LOADS)
    finding = mystery("memory bandwidth", 3)
    figures = [gallery.chart(finding, kind) for kind in gallery.kinds(finding)]
    variants = Contention(mystery=3).make_variants()
    assert list(variants) == ["quiet", "mystery"]
    assert pickle.loads(pickle.dumps(variants["mystery"])).name == "mystery"
    said = [variants["mystery"].changes, *(f.svg + f.alt for f in figures)]
    assert not any(name in text for name in LOADS for text in said)

    def words(finding):
        verdict = finding.verdict
        return verdict.next, {t.variant for t in finding.trials}, finding.notes

    numbers = {told(number, "memory"): number for number in range(1, 30)}
    first, *rest = [words(mystery(secret, n)) for secret, n in numbers.items()]
    assert len(rest) == 3
    assert all(other == first for other in rest)


def test_opening_tells_what_gave_it_away_and_talks_nothing_away():
    numbers = {told(number, "memory"): number for number in range(1, 99)}
    burners, sleeping = numbers["cpu burners"], numbers["sleeping pipeline"]
    text = opened(mystery("cpu burners", burners))
    assert text.startswith('It was "cpu burners".\n')
    assert "Other programs: 1.20 cores, against 0.05 cores when quiet." in text
    assert "point" not in text
    elsewhere = opened(mystery("sleeping pipeline", burners))
    assert 'these point to "sleeping pipeline", and that is wrong' in elsewhere
    assert "no counter moved far enough" in opened(mystery("quiet", burners))
    greedy = SHOWS["sleeping pipeline"] | GREEDY
    shows = {"quiet": BUSY, "mystery": greedy}
    both = opened(found(run(("quiet", "mystery"), shows=shows), mystery=sleeping))
    assert '"cpu burners" or "sleeping pipeline": which one cannot' in both
    with pytest.raises(BadParameterError, match="holds no mystery"):
        opened(found(run(ALL[:2])))
    assert Contention.reveal(found(run(ALL[:2]))) == ""


def test_a_slow_pipeline_takes_twice_the_usual_step_once_that_is_known():
    steps = [9.0, 0.010, 0.012, 0.011]
    assert loads.delay(steps) == 0.0
    assert loads.delay([*steps, 0.010]) == pytest.approx(2 * 0.011)
    # What a step takes while its pipeline computes is not what it takes by itself.
    assert loads.delay([*steps, 0.010, 5.0]) == pytest.approx(2 * 0.011)


def test_a_decoding_pipeline_really_decodes_and_leaves_batches_as_they_are():
    def look(tf):
        loads.timeit.repeat = lambda work, number: [1e-4]
        steps, pairs = [], ([[1.0, 2.0], [3.0, 4.0]], [0, 1])

        def read(jpeg):
            batches = tf.data.Dataset.from_tensor_slices(pairs)
            batches = batches.map(loads._decoding(steps, 2, jpeg))
            return [images.numpy().tolist() for images, _ in batches]

        early = read(b"no picture")
        steps.extend([1e-4] * 5)
        with pytest.raises(tf.errors.InvalidArgumentError):
            read(b"no picture")
        return early, read(shared_images.jpeg(0, 0))

    # Before the pace is known nothing is decoded; then even what is no picture is.
    early, late = fresh(look)
    assert early == late == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("name", ["quiet", "cpu burners", *PIPELINES, "mystery"])
def test_every_variant_really_trains_and_tells_what_it_waits(name):
    variants = Contention().make_variants() | Contention(mystery=3).make_variants()
    running = launched().start(variants[name].work, 1, Limits())
    ticks = ticks_of(until_ticks(running, 13))
    running.kill("completed", "")
    assert ticks[0][3] == "set-up"
    assert {(examples, *parts) for _, examples, parts, _ in ticks[1:]} == {
        (32, "input")
    }


def test_batches_from_the_disk_look_like_those_from_memory(tmp_path):
    def look(tf):
        os.environ["PERFKIT_CACHE"] = str(tmp_path)
        loads._RECORDS = 40
        list(loads.make())
        memory, disk = (loads._fed(loads.Job(32, fed)) for fed in ("memory", "disk"))
        return len(memory.element_spec), [
            (one.shape.as_list(), one.dtype.name, float(tf.reduce_max(tf.abs(one))))
            for one in next(iter(disk))
        ]

    parts, (images, labels) = fresh(look)
    assert parts == 2
    assert images[:2] == ([32, 32, 32, 3], "float32")
    assert images[2] <= 1
    assert labels[:2] == ([32], "int32")
    assert labels[2] <= 9


def test_signs_come_first_with_the_numbers_of_every_variant_and_in_words():
    made = found(run(noise=0.0))
    assert next(iter(gallery.kinds(made))) == "signs"
    figure = check(gallery.chart(made, "signs"))
    written = words(figure)
    assert {"0.60 cores", "0.95 cores", "1.20 cores"} <= set(written)
    assert {"500 MB/s", "40 ms", "20 ms", "48 %"} <= set(written)
    assert all(written.count(name) >= 2 for name in ALL)
    assert "sleeping pipeline: a step 40 ms, waiting for input 48 %" in figure.alt
    for other in (
        found(run(("quiet",), rounds=1)),
        found(run(("quiet", "mystery"), rounds=1), mystery=3),
        found(run(shows={name: {"disk_read": 0.0} for name in ALL})),
    ):
        assert len(check(gallery.chart(other, "signs")).svg) < 70_000
