"""What a person reads of an account."""

from dataclasses import replace

import pytest

from perfkit.findings.account_report import verdict
from tests.training.account.accounts import GROWTH, HOT, account, line, whole


def test_the_best_tip_is_the_answer_and_no_gain_is_claimed():
    said = verdict(whole())
    assert said.headline == "Read each file once."
    assert said.much == "The model waits for files."
    assert (said.sure, said.interval) == ("profiled", "30 s")
    assert said.next.splitlines() == [
        "Try: `model(x)`.",
        "Then: Save less often (10 %).",
        "`perfkit diagnose` measures how much that brings.",
    ]
    assert said.warnings[0] == "It returns a tensor."


def test_without_a_tip_the_hottest_line_is_named():
    said = verdict(account(line(7, computing=6.0), line(8, input=3.0)))
    assert said.headline == "60 % of the time goes into computing at train.py, line 7."
    assert said.much.startswith("Nothing that usually slows a line is seen")
    assert said.sure == "profiled"
    assert said.edits == ()


def test_no_line_is_named_where_only_the_set_up_was_seen():
    said = verdict(account(line(7), elsewhere_s=0.0, once_s=26.0))
    assert said.headline == "perfkit saw only the set-up of this script."
    assert said.much.startswith("26 s went into imports")
    assert said.sure == "not known yet"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"error": "train.py exited with 3."}, "train.py exited with 3; the account"),
        ({"updates": 0}, "No training step ran in this time"),
        ({"updates": 1}, "Only 1 step ran in this time"),
        ({"updates": 7}, "Only 7 steps ran in this time"),
        ({"untraced": "Another profiler runs."}, "Another profiler runs."),
        ({"uncontained": "It may write files."}, "It may write files."),
    ],
)
def test_what_a_reader_must_know_is_a_warning(fields, said):
    (warning,) = verdict(account(HOT, **fields)).warnings
    assert warning.startswith(said)
    assert "in steps" in account(line(computing=9.0), untraced="x").verdict.headline
    assert verdict(account(HOT)).warnings == ()
    assert verdict(account(HOT, updates=7, ended=True)).warnings == ()


def test_ends_of_passes_that_take_long_are_in_no_share_and_told():
    slow, quick = (account(HOT, pass_ends_s=seconds) for seconds in (2.0, 0.2))
    assert "Nor 2 s at the ends of passes" in slow.report.besides[1]
    assert len(quick.report.besides) == 1
    assert slow.repeated_s == quick.repeated_s


def test_what_repeats_it_can_be_typed():
    for training, command in {
        "train.py": "perfkit lines train.py",
        "my train.py:make": "perfkit lines 'my train.py:make'",
        "make_training": "perfkit.lines(make_training)",
    }.items():
        report = replace(whole(), training=training).report
        assert report.repeat == f"Repeat it: `{command}`."


def test_growing_memory_is_told_with_its_interval_and_what_to_do():
    def told(**fields):
        made = account(HOT, growth=replace(GROWTH, **fields))
        # It is not what slows the training.
        assert made.verdict == account(HOT).verdict
        return made.report.besides[-1]

    grows = "Memory grows by 5 MB (4.6 MB to 5.4 MB) with each"
    keep = "Keep no tensors in a list, a callback or a global: keep `float(loss)`."
    assert told() == f"{grows} epoch, 50 MB so far. {keep}"
    assert told(unit="fit", kept="models", line=0) == (
        f"{grows} `fit`, 50 MB so far. train.py, line 12 makes a model each time, and "
        "the one before stays. Make the model once and give it its first weights again "
        "(`set_weights`); `keras.backend.clear_session()` before the next gives back a "
        "part."
    )
    often = "Memory grows by 5 MB with every 100 calls of `train_on_batch`"
    said = told(unit="train_on_batch", low=5.02e6, high=5.02e6)
    assert said == f"{often}, 50 MB so far. {keep}"


@pytest.mark.parametrize(
    ("epochs_s", "grow"),
    [
        ((9.0, 3.0, 3.3, 3.7, 4.0, 4.4, 5.0), True),
        # On a busy machine some epochs always take longer.
        ((9.0, 3.1, 3.3, 5.3, 2.8, 6.1, 4.8), False),
        ((9.0, 3.0, 4.0, 5.0), False),
    ],
)
def test_epochs_are_called_longer_where_nearly_all_are(epochs_s, grow):
    text = str(replace(whole(), epochs_s=epochs_s).report)
    assert ("Epochs get longer" in text) == grow
