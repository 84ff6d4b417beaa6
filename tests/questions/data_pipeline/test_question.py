import itertools
import shutil
from dataclasses import replace

import pytest

from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.errors import BadParameterError
from perfkit.questions.data_pipeline import DataPipeline, wait_of
from perfkit.questions.runs import run
from tests.questions import races
from tests.questions.races import sayings

IMAGES = {"count": 256, "found": 256, "bytes": 26_000_000, "bytes_each": 101_000}
IMAGES |= {"width": 500, "height": 375, "decoded_bytes": 144_000_000}
IMAGES |= {"skipped": 0, "skipped_because": {}, "skipped_names": []}
MANY = {"notes": {"images": IMAGES | {"found": 1_000_000}}}
CPU, BUSY_GPU = {"batch": "CPU:0", "gpus": 0}, {"batch": "GPU:0", "gpus": 1}
NAIVE = {"naive map": 400}
FED = NAIVE | {"prefetch": 800}


def measured(rates, *, notes=None, told=None, **more):
    """A run in which each variant has the rate that is asked for and tells the same."""
    return races.measured(
        rates,
        told=dict.fromkeys(rates, told or {}),
        notes={"images": IMAGES, "memory": 16_000_000_000} | (notes or {}),
        **more,
    )


verdict = sayings("data-pipeline")


def test_a_way_stands_against_the_one_it_changes_and_says_what_else_it_changes():
    variants = DataPipeline(variants="parallel map,prefetch,cache").make_variants()
    against = [one.against for one in variants.values()]
    assert against == ["naive map", "naive map", "parallel map", "prefetch"]
    single = DataPipeline(variants="cache").make_variants()["cache"]
    assert single.against == "naive map"
    assert single.changes.endswith('On top of "prefetch".')


def test_a_side_that_no_photograph_has_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(BadParameterError, match="drawn here are 375 px high; choose"):
        DataPipeline(image_side=376)
    DataPipeline(image_side=1024, images=str(tmp_path))


@pytest.mark.parametrize(
    ("loud", "more"),
    [("naive as written", {}), ("synthetic", {}), (CONTROL, {}), ("cache", MANY)],
)
def test_what_is_no_way_to_feed_or_holds_too_much_never_wins(loud, more):
    assert verdict(measured(FED | {loud: 9000}, **more)).winner == "prefetch"


def test_a_wait_is_a_row_and_what_a_cache_keeps_is_a_warning():
    found = verdict(
        measured(FED | {"cache": 1200}, waits={"naive map": 0.62, "cache": 0.08})
    )
    assert found.warnings == ('"cache" keeps 144 MB in memory.',)
    rows = {row.label: row.value for row in found.facts}
    assert rows['Share of a step that waits for data, "cache"'] == "8.0 %"


def test_the_share_of_the_wait_leaves_out_the_first_call_and_failed_trials():
    first = races.trial("naive map", 400, wait=0.5, first_s=10)
    crashed = replace(first, round=2, outcome="crashed")
    run = Measurement(variants=(), trials=(first, crashed))
    assert wait_of(run, "naive map") == pytest.approx(0.5, abs=0.001)


@pytest.mark.parametrize("where", [CPU, BUSY_GPU])
def test_where_map_runs_is_told_by_where_its_batches_lie(where):
    found = verdict(measured(FED, told={"where": where}))
    rows = {row.label: row.value for row in found.facts}
    assert rows["Batches were made on"] == where["batch"]


def test_a_run_completes_and_tells_its_waits_and_what_was_left_out(
    photos, tmp_path, own_cache
):
    # A folder of one's own, of which one image is broken.
    folder = shutil.copytree(photos, tmp_path / "photos")
    part = next(folder.rglob("*.jpg")).read_bytes()[:9000]
    (folder / "class-1" / "broken.jpg").write_bytes(part)
    ways = "prefetch,cache,tfrecord jpeg"
    asked = DataPipeline(images=str(folder), image_side=64, batch=4, variants=ways)
    small_run = run(asked, budget=8, folder=tmp_path / "findings")
    ended = [(trial.variant, trial.outcome) for trial in small_run.trials]
    # A busy machine may leave no time for the end of the last round.
    assert {outcome for _, outcome in ended} <= {"completed", "stopped"}
    whole = {one for one, outcome in ended if outcome == "completed"}
    assert whole == {"naive map", "prefetch", "cache", "tfrecord jpeg", CONTROL}
    images = small_run.notes["images"]
    assert (images["count"], images["found"], images["classes"]) == (12, 13, 3)
    assert images["skipped_names"] == ["broken.jpg"]
    stages = small_run.notes["stages"]
    assert set(stages) == {"decode", "decode_square", "augment"}
    assert min(stages.values()) > 0
    rows = {row.label: row.value for row in small_run.verdict.facts}
    assert rows["Images left out"] == "1 broken or cut short (broken.jpg)"
    trial = next(trial for trial in small_run.trials if trial.variant == "prefetch")
    lengths = [b - a for (a, _), (b, n) in itertools.pairwise(trial.ticks) if n]
    waits = trial.parts["input"]
    assert len(waits) == len(lengths)
    assert all(0 <= wait <= length for wait, length in zip(waits, lengths, strict=True))
    assert sum(waits) > 0
    assert trial.notes["where"]["batch"] == "CPU:0"
    # Three images are enough to compare what the ways give.
    for path in sorted(folder.rglob("*.jpg"))[3:]:
        path.unlink()
    assert list(asked.prepare())
