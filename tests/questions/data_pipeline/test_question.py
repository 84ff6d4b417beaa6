import itertools
from dataclasses import replace

import pytest

from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.errors import BadParameterError
from perfkit.findings.report import Report, in_text
from perfkit.questions.data_pipeline import DataPipeline, claims
from perfkit.questions.data_pipeline.variants import VARIANTS
from perfkit.questions.data_pipeline.verdict import waits_of
from perfkit.questions.runs import run
from perfkit.questions.shared import images as shared_images
from tests.findings.made import of_run
from tests.questions import races
from tests.questions.races import sayings

IMAGES = {"count": 256, "found": 256, "bytes": 26_000_000, "bytes_each": 101_000}
IMAGES |= {"width": 500, "height": 375, "decoded_bytes": 144_000_000}
IMAGES |= {"skipped": 0, "skipped_because": {}, "skipped_names": []}
MANY = {"notes": {"images": IMAGES | {"found": 1_000_000}}}
SKIPPED = {"skipped": 4, "skipped_names": [f"{n}.jpg" for n in "abcd"]}
SKIPPED |= {"skipped_because": {"empty": 1, "broken or cut short": 3}}
LEFT_OUT = {"notes": {"images": IMAGES | SKIPPED}}
CPU = {"batch": "CPU:0", "gpus": 0, "gpu_bytes": 0}
IDLE_GPU = {"batch": "CPU:0", "gpus": 1, "gpu_bytes": 0}
BUSY_GPU = {"batch": "GPU:0", "gpus": 1, "gpu_bytes": 4_000_000}
NAIVE = {"naive map": 400}
FED = NAIVE | {"prefetch": 800}
LIMIT = {"decode limit": 1000}


def measured(rates, *, notes=None, told=None, **more):
    """A run in which each variant has the rate that is asked for and tells the same."""
    return races.measured(
        rates,
        told=dict.fromkeys(rates, told or {}),
        notes={"images": IMAGES, "memory": 16_000_000_000} | (notes or {}),
        **more,
    )


verdict, because = sayings("data-pipeline")


def test_a_way_stands_against_the_one_it_changes_and_says_what_else_it_changes():
    assert list(DataPipeline().make_variants()) == [
        *("naive map", "parallel map", "prefetch", "cache", "crop while decoding"),
        *("synthetic", "decode limit"),
    ]
    variants = DataPipeline(variants="parallel map,prefetch,cache").make_variants()
    against = {name: one.against for name, one in variants.items()}
    assert against == {
        **{"naive map": "naive map", "parallel map": "naive map"},
        **{"prefetch": "parallel map", "cache": "prefetch"},
    }
    assert not any("On top of" in one.changes for one in variants.values())
    single = DataPipeline(variants="cache").make_variants()["cache"]
    assert single.against == "naive map"
    assert single.changes.endswith('On top of "prefetch".')
    # Alone there is no training to have a ceiling.
    asked = "prefetch,synthetic,decode limit"
    alone = DataPipeline(variants=asked, feeding="alone").make_variants()
    assert list(alone) == ["naive map", "prefetch", "decode limit"]


def test_what_cannot_be_asked_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(BadParameterError, match="photographs are 375 px high; choose"):
        DataPipeline(image_side=376)
    DataPipeline(image_side=1024, images=str(tmp_path))


def test_the_winner_is_named_with_its_gain_and_its_lines_of_code():
    found = verdict(measured({"naive map": 400, "prefetch": 800, "cache": 1200}))
    assert (found.winner, found.headline) == ("cache", "Cache the decoded images.")
    assert found.much == (
        'This training then runs 3.0 times as fast as "naive map": 1,200 instead of '
        "400 images/s."
    )
    assert found.sure == "sure"
    (edit,) = found.edits
    assert edit.old == VARIANTS["naive map"].advice
    assert edit.new == VARIANTS["cache"].advice
    # To be copied, code keeps its indentation behind the sign.
    assert "\n  +     return augment(" in in_text(Report(verdict=found))


@pytest.mark.parametrize(
    ("loud", "more"),
    [
        *((name, {}) for name in ("frozen cache", "naive as written", "synthetic")),
        *((CONTROL, {}), ("cache", MANY)),
    ],
)
def test_what_is_no_way_to_feed_or_holds_too_much_never_wins(loud, more):
    assert verdict(measured(FED | {loud: 9000}, **more)).winner == "prefetch"


def test_the_share_of_the_wait_leaves_out_the_first_call_and_failed_trials():
    first = races.trial("naive map", 400, wait=0.5, first_s=10)
    crashed = replace(first, round=2, outcome="crashed")
    run = Measurement(variants=(), trials=(first, crashed))
    assert waits_of(run) == {"naive map": pytest.approx(0.5, abs=0.001)}


@pytest.mark.parametrize(
    ("rates", "next"),
    [
        ({"prefetch": 400, "synthetic": 403}, "The input costs less than 10 %"),
        ({"prefetch": 400, "synthetic": 600}, ""),
        ({"prefetch": 400}, ""),
        ({"prefetch": 800}, ""),
        ({"prefetch": 800, "synthetic": 805}, "After that the input costs less than"),
        ({"prefetch": 750, "synthetic": 1000}, "After that the input still costs 25 %"),
    ],
)
def test_what_the_input_costs_is_said_by_the_rate_without_any(rates, next):
    said = verdict(measured(NAIVE | rates)).next
    assert said.startswith(next)
    assert bool(said) is bool(next)


FREE = "a short wait is no sign that the input is free"
WITHIN = {"waits": {"prefetch": 0.02}}
REASONS = {
    "never advised": (
        NAIVE | {"frozen cache": 9000},
        {},
        '"frozen cache" does not count: each image is augmented once',
    ),
    "too large": (
        FED | {"cache": 1200},
        MANY,
        '"cache" does not count: all 1,000,000 images decoded take 562 GB, and this '
        "machine has 16 GB.",
    ),
    "one processor": (FED, WITHIN | {"told": {"where": CPU}}, FREE),
    "memory": (FED, {}, "came from the system's memory and not from a disk, as far as"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_that_no_number_says_is_told(name):
    rates, more, reason = REASONS[name]
    assert reason in because(measured(rates, **more))


ROWS = {
    "waits": (
        FED,
        {"waits": {"naive map": 0.62, "prefetch": 0.08}},
        'Wait for data, of a step with "prefetch"',
        "8.0 %",
    ),
    "ceiling": (
        FED | {"synthetic": 1000},
        {},
        '"prefetch", of the rate of "synthetic"',
        "80 %",
    ),
    "limit": (
        FED | {"cache": 3000} | LIMIT,
        {},
        '"prefetch", which decodes whole images, of the rate of "decode limit"',
        "80 %",
    ),
    "squares": (
        FED | LIMIT | {"crop while decoding": 1200},
        {},
        '"crop while decoding", which decodes only its square, of the rate of "decode '
        'limit"',
        "120 %",
    ),
    "images": (FED, {}, "Images fed", "256 of about 500 by 375 px, 101 KB each"),
    "left out": (
        FED,
        LEFT_OUT,
        "Images left out",
        "1 empty, 3 broken or cut short (a.jpg, b.jpg, c.jpg, …)",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_number_that_was_measured_is_a_row(name):
    rates, more, label, value = ROWS[name]
    rows = {row.label: row for row in verdict(measured(rates, **more)).facts}
    assert rows[label].value == value
    assert bool(rows[label].interval) is ("of the rate of" in label)


def test_where_a_gpu_computes_a_short_wait_is_not_doubted_and_alone_nothing_trains():
    assert FREE not in because(measured(FED, **WITHIN, told={"where": IDLE_GPU}))
    assert "training" not in verdict(measured(FED), feeding="alone").much


@pytest.mark.parametrize(
    ("best", "asked", "warning"),
    [
        ("cache", {}, '"cache" keeps 144 MB in memory.'),
        ("tfrecord raw", {}, "where the images themselves take 26 MB."),
        ("uint8", {"feeding": "alone"}, '"uint8" leaves scaling and brightening to'),
    ],
)
def test_what_the_winner_takes_besides_is_a_warning(best, asked, warning):
    (found,) = verdict(measured({"naive map": 400, best: 800}), **asked).warnings
    assert warning in found
    # Of the reader's pictures a part was fed, and all are kept.
    run = measured({"naive map": 400, "cache": 800})
    images = run.notes["images"]
    run.notes["images"] = images | {"found": 10 * images["count"]}
    assert verdict(run).warnings == ('"cache" keeps 1.44 GB in memory.',)
    trained = measured(NAIVE | {"uint8": 800}, waits={"uint8": 0.1})
    assert verdict(trained).warnings == ()
    assert verdict(replace(run, notes={})).winner == "cache"


def answers(rates, where=None, **more):
    told = {"where": where} if where else {}
    against = {name: VARIANTS[name].against for name in rates}
    run = measured(rates, told=told, against=against, **more)
    found = of_run(run, experiment="data-pipeline")
    return {claim.says: claim for claim in claims(found)}


RECORDS = "TFRecord is faster than a folder of files."


@pytest.mark.parametrize(
    ("where", "answer", "reason"),
    [
        (
            CPU,
            "cannot be tested here",
            "No GPU was there, and the same pipeline ran: it needs none.",
        ),
        (IDLE_GPU, "not so", "Making a batch took 0 B of the GPU's memory."),
        (BUSY_GPU, "so here", "Making a batch took 4 MB of the GPU's memory."),
    ],
)
def test_where_map_runs_is_answered_by_where_its_batches_lie(where, answer, reason):
    found = answers({"naive map": 400, "parallel map": 700}, where)
    claim = found["Augmentation in map runs on the GPU."]
    assert claim.answer == answer
    assert reason in claim.because
    assert any('"parallel map" runs at 1.7' in fact for fact in claim.because)


def test_only_claims_that_a_run_can_answer_are_revealed():
    against = {"parallel map": "naive map"}
    run = measured(
        {"naive map": 400, "parallel map": 700}, told={"where": CPU}, against=against
    )
    text = DataPipeline.reveal(of_run(run, experiment="data-pipeline"))
    first, *because = text.splitlines()
    assert first == "Augmentation in map runs on the GPU. Cannot be tested here."
    assert all(line.startswith("    ") for line in because)


def test_vectorised_numpy_is_answered_by_device_and_timing():
    rates = FED | {"numpy": 700, "numpy by element": 70}
    claim = answers(rates, IDLE_GPU)["Vectorised preprocessing uses the GPU."]
    assert claim.answer == "not so"
    assert any('"numpy by element" runs at 0.10' in fact for fact in claim.because)


@pytest.mark.parametrize(
    ("jpeg", "raw", "noise", "answer"),
    [
        (800, 790, 0.01, "not so here"),
        (1000, 1600, 0.01, "so here"),
        (800, 1600, 0.01, "mixed"),
        (860, 860, 0.3, "too noisy to say"),
    ],
)
def test_whether_records_are_faster_is_answered_by_the_timing(jpeg, raw, noise, answer):
    rates = FED | {"tfrecord jpeg": jpeg, "tfrecord raw": raw}
    claim = answers(rates, noise=noise)[RECORDS]
    assert (claim.answer, len(claim.because)) == (answer, 3)


def test_a_claim_whose_variants_were_not_run_says_what_to_run():
    found = answers({"naive map": 400})
    assert {claim.answer for claim in found.values()} == {"not measured"}
    for claim in found.values():
        DataPipeline(variants=claim.because[0].split("'")[1])


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A short run on a folder of one's own, of which one image is broken."""
    folder = tmp_path_factory.mktemp("own")
    for seed in range(6):
        path = folder / f"class-{seed % 2}" / f"{seed}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shared_images.jpeg(seed, seed % 2))
    (folder / "class-1" / "broken.jpg").write_bytes(path.read_bytes()[:9000])
    ways = "prefetch,cache,tfrecord shards,synthetic,decode limit"
    asked = DataPipeline(images=str(folder), image_side=64, batch=4, variants=ways)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return run(asked, budget=12, folder=tmp_path_factory.mktemp("findings"))


def test_a_run_completes_and_tells_its_waits_its_plan_and_what_was_left_out(small_run):
    ended = [(trial.variant, trial.outcome) for trial in small_run.trials]
    # A busy machine may leave no time for the end of the last round.
    assert {outcome for _, outcome in ended} <= {"completed", "stopped"}
    assert {one for one, outcome in ended if outcome == "completed"} == {
        *("naive map", "prefetch", "cache", "tfrecord shards", "synthetic"),
        *("decode limit", CONTROL),
    }
    images = small_run.notes["images"]
    assert (images["count"], images["found"], images["classes"]) == (6, 7, 2)
    assert images["skipped_names"] == ["broken.jpg"]
    rows = {row.label: row.value for row in small_run.verdict.facts}
    assert rows["Images left out"] == "1 broken or cut short (broken.jpg)"
    trial = next(trial for trial in small_run.trials if trial.variant == "prefetch")
    lengths = [b - a for (a, _), (b, n) in itertools.pairwise(trial.ticks) if n]
    waits = trial.parts["input"]
    assert len(waits) == len(lengths)
    assert all(0 <= wait <= length for wait, length in zip(waits, lengths, strict=True))
    assert sum(waits) > 0
    assert trial.notes["plan"]["stages"]
    assert trial.notes["where"]["batch"] == "CPU:0"
