"""Changes of a training take turns in the process that looked at it."""

import contextlib
import threading
from types import SimpleNamespace

import keras
import pytest

from perfkit.engine.live import FAILED
from perfkit.engine.trial import READY, WHOLE, Note, Tick
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.facts import facts_of
from perfkit.training.diagnose.look import Turns
from perfkit.training.diagnose.loop import Looping, fitted
from perfkit.training.diagnose.rounds import AS_GIVEN, Screening
from tests.training.diagnose import fits
from tests.training.diagnose.measurements import CEILING, MAP, XLA, change, measured

STEPS = 6


def turns_of(training, enough, turns=None, step_s=0.001):
    """Run turns until their names are enough; none may fail: whose, what each told."""
    following, turns = Turns(), [] if turns is None else turns
    looping = Looping(Epochs(batch=fits.BATCH))
    making = fitted(
        lambda: fits.returned(training), looping, screening=following.screen
    )
    with contextlib.closing(making) as running:
        for number, told in enumerate(running):
            following.take_event(told)
            if number == 3:
                following.go_on(facts_of(training, pipeline={}, step_s=step_s), 1e6)
            assert getattr(told, "name", "") != FAILED, told
            if getattr(told, "label", "").startswith("turn "):
                if enough([name for name, _ in turns]):
                    break
                turns.append((told.label.partition(": ")[2], []))
            elif turns:
                turns[-1][1].append(told)
        else:
            pytest.fail(f"All that there is to try are {[name for name, _ in turns]}.")
    return turns


@pytest.fixture(scope="module", autouse=True)
def _short_turns():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perfkit.training.diagnose.look.turn_s", lambda step_s: 0.05)
        yield


@pytest.fixture(scope="module")
def watched():
    """Turns of an eager training with all that watches one, and what a callback saw."""
    turns, begun, eager = [], [], {}

    class Mine(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            # Made fit for a trial once, and for no other variant's.
            assert not hasattr(self.on_epoch_end.__wrapped__, "__wrapped__")
            begun.append(getattr(self, "trained", 0))
            self.trained = begun[-1] + 1

        def on_train_batch_end(self, batch, logs=None):
            if turns:
                eager.setdefault(turns[-1][0], set()).add(self.model.run_eagerly)

        def on_epoch_end(self, epoch, logs=None):
            # It stays the object that code outside of it may know.
            assert self is mine

    mine = Mine()
    training = fits.training(
        fits.batches(STEPS),
        metrics=["mae"],
        validation_data=fits.batches(2),
        callbacks=[None, mine],
        verbose=2,
    )
    training.model.run_eagerly = True
    wanted = {AS_GIVEN, "without input", "without observers", "graph"}
    turns_of(training, wanted.issubset, turns)
    return SimpleNamespace(turns=turns, begun=begun, eager=eager)


def test_the_training_and_its_groups_take_turns_and_each_is_ready_before_it_counts(
    watched,
):
    names = [name for name, _ in watched.turns]
    assert names[0] == AS_GIVEN
    assert {"without input", "without observers"} <= set(names)
    for _, told in watched.turns[:-1]:
        assert READY in told
        counted = told[told.index(READY) :]
        assert sum(isinstance(one, Tick) for one in counted) > 1


def test_turns_whose_ticks_hold_the_ends_of_epochs_say_so(watched):
    told = {name: Note(WHOLE, True) in told for name, told in watched.turns}
    assert told["without observers"]
    # Where it validates, that comes by itself.
    assert not told[AS_GIVEN]


class Subclass(keras.Model):
    """A model that takes no new part once it is built."""

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1)

    def call(self, values):
        return self.layer(values)


def test_a_model_of_a_class_of_its_own_takes_turns_with_its_metrics():
    training = fits.training(fits.batches(STEPS), metrics=["mae"])
    training.model = Subclass()
    training.model.compile("sgd", "mse", metrics=["mae"])
    assert turns_of(training, {AS_GIVEN, "without input", "without metrics"}.issubset)


@pytest.mark.parametrize("shuffle", [list.copy, list.reverse])
def test_long_steps_need_no_turn_to_warm_up_and_any_variant_may_be_first(
    shuffle, monkeypatch
):
    monkeypatch.setattr("perfkit.training.diagnose.look.random.shuffle", shuffle)
    training = fits.training(fits.batches(STEPS), metrics=["mae"])
    turns = turns_of(training, lambda names: len(names) == 2, step_s=0.5)
    assert len({name for name, _ in turns}) == 2
    assert (turns[0][0] == AS_GIVEN) == (shuffle is list.copy)


def test_each_variant_has_attributes_and_a_way_to_run_of_its_own(watched):
    # The first look, then whichever variants have it, each from its start.
    tried = {name for name, _ in watched.turns} - {"without Mine", "without observers"}
    assert watched.begun.count(0) == 1 + len(tried)
    assert (watched.eager[AS_GIVEN], watched.eager["graph"]) == ({True}, {False})


class Rows(keras.utils.PyDataset):
    """Batches for threads to make ahead."""

    def __len__(self):
        return 500

    def __getitem__(self, index):
        return fits.rows(1)


def test_no_batches_are_made_for_a_turn_that_is_over():
    before, left = set(threading.enumerate()), []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            left.extend(
                set(threading.enumerate()) - before - {threading.current_thread()}
            )

    training = fits.training(Rows(workers=2), callbacks=[Look()])
    assert turns_of(training, lambda names: len({*names}) > 1)
    assert [one.name for one in left if one.name.startswith("Worker_")] == []


def test_what_a_change_raises_ends_its_turns_and_what_the_training_raises_ends_all():
    def fail(name):
        raise ValueError(f"no {name}")

    following, turnstile = Turns(), SimpleNamespace(tell=lambda event: None)
    following._make_variant = fail
    following._turn("XLA", 1, turnstile)
    assert following._failed == {"XLA": "raised ValueError: no XLA"}
    with pytest.raises(ValueError, match="no as given"):
        following._turn(AS_GIVEN, 1, turnstile)


# Whose turn it is.

WATCHING = change("without observers", "callback", ceiling=True)
CACHE = change("cache", "no-cache", after="without input")
LOGGER = change("without CSVLogger", "callback", after="without observers")
ALL = (XLA, LOGGER, CACHE, MAP, WATCHING, CEILING)


def test_groups_come_first_but_for_what_failed():
    nothing = measured(rounds=0)
    assert Screening(ALL)(nothing) == [WATCHING.name, CEILING.name]
    assert Screening(ALL)(nothing, {CEILING.name}) == [WATCHING.name]


def test_a_group_that_brings_nothing_is_not_split():
    choosing = Screening(ALL)
    choosing(measured(rounds=0))
    found = measured(rounds=1, without_input=1.0, without_observers=3.0)
    later = {name for _ in range(4) for name in choosing(found)}
    assert LOGGER.name in later
    assert not later & {MAP.name, CACHE.name}


def test_what_an_account_points_to_comes_first_in_its_group():
    choosing = Screening(ALL, {"serial-map"})
    choosing(measured(rounds=0))
    names = choosing(measured(rounds=1, without_input=5.0, without_observers=1.0))
    assert names.index(MAP.name) < names.index(CACHE.name)
