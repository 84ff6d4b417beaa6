"""Races across versions and backends of Keras, without another of either.

``other_keras`` stands for Keras 3 on JAX; what is TensorFlow's runs on this Keras.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import perfkit
from perfkit.engine.host import Environment
from perfkit.engine.trial import LOSSES, Pause
from perfkit.errors import MissingPartError
from perfkit.machine import environment
from perfkit.training.diagnose import epochs
from perfkit.training.diagnose import training as backend
from perfkit.training.diagnose.training import handed_over
from perfkit.training.race import backends
from perfkit.training.race import race as sessions
from perfkit.training.race.backends import MEMORY, KerasRace
from perfkit.training.race.learning import FIRST_STEP
from perfkit.training.race.question import BRIEF_ROUNDS, Race
from perfkit.training.race.rounds import WholeRace
from perfkit.training.race.sides import Asked
from tests.training.race.built import NEW, OLD, facts, measured, sides
from tests.training.race.repositories import SCRIPT, write

ROOT = Path(__file__).resolve().parents[3]
OTHER_KERAS = Path(__file__).with_name("other_keras")
TRAIN = """
import sys
import numpy as np
import keras
x = np.random.default_rng(1).normal(size=(640, 4))
keras.Model({start}).fit(x, x.sum(1, keepdims=True), batch_size=16, epochs=2)
raise AssertionError("nothing behind fit is run")
"""
# Looks at a script and makes a trial of it where nobody can import TensorFlow.
WITHOUT_TENSORFLOW = """
import itertools, json, sys
sys.modules["tensorflow"] = None
import jax
from perfkit.engine.trial import Note, Tick
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.maker import maker
from perfkit.training.race.backends import look_at, train
from perfkit.training.race.sides import Side
script, folder = sys.argv[1:]
side = Side(name="new", maker=maker(script))
told = [*look_at(side, folder)]
facts = {note.name: note.value for note in told}
assert "facts" in facts, facts
work = train(side, Facts(**facts["facts"]), folder)
told = [*itertools.islice(work, 12)]
work.close()
notes = {note.name: note.value for note in told if isinstance(note, Note)}
examples = sum(tick.examples for tick in told if isinstance(tick, Tick))
waited = len(jax.WAITED)
print(json.dumps([facts["facts"], notes, examples, waited]))
"""


def run_without_tensorflow(folder, weight):
    """The facts, notes, examples and waits of a script on the other Keras."""
    script = folder / f"train_{weight}.py"
    script.write_text(TRAIN.format(start=weight))
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, str(script), str(folder)],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join((str(OTHER_KERAS), str(ROOT))),
            "PERFKIT_UNCONTAINED": "1",
            "KERAS_BACKEND": "jax",
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_another_backend_is_looked_at_and_timed_without_tensorflow(tmp_path):
    base, notes, examples, waited = run_without_tensorflow(tmp_path, 0.5)
    assert (base["data"], base["batch"], base["steps"]) == ("arrays", 16, 40)
    assert base["element"] == ["float64[16, 4]", "float64[16, 1]"]
    assert examples > 0
    assert waited > 0
    assert notes[MEMORY] > 10**7
    assert notes[FIRST_STEP] > 0
    # The other side has other weights of its own, and begins with those of the first.
    new, other_notes, *_ = run_without_tensorflow(tmp_path, 3.0)
    assert new["start"]["losses"] == base["start"]["losses"]
    assert other_notes[LOSSES][0][1] == pytest.approx(notes[LOSSES][0][1])
    assert backends.compare_starts(new["start"], base["start"]) == ""


@pytest.mark.parametrize(
    ("backend_is", "has_gpu", "waits"),
    [
        ("tensorflow", False, ["tensorflow"]),
        ("jax", False, ["jax"]),
        ("torch", True, ["torch"]),
        ("torch", False, []),
    ],
)
def test_each_backend_is_waited_for_in_its_own_way(
    monkeypatch, backend_is, has_gpu, waits
):
    waited = []
    device = SimpleNamespace(
        is_available=lambda: has_gpu, synchronize=lambda: waited.append("torch")
    )
    test = SimpleNamespace(sync_devices=lambda: waited.append("tensorflow"))
    for name, module in {
        "tensorflow": SimpleNamespace(test=SimpleNamespace(experimental=test)),
        "jax": SimpleNamespace(
            live_arrays=list, block_until_ready=lambda _: waited.append("jax")
        ),
        "torch": SimpleNamespace(cuda=device),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(backend, "backend_name", lambda: backend_is)
    backend.wait()
    assert waited == waits


def test_keras_2_is_the_module_that_a_variable_asks_for(monkeypatch):
    monkeypatch.delenv(environment.LEGACY, raising=False)
    assert backend.load_keras() is keras
    assert not backend.is_keras_2()
    old = SimpleNamespace(__version__="2.16.0")
    monkeypatch.setitem(sys.modules, "tf_keras", old)
    monkeypatch.setenv(environment.LEGACY, "1")
    assert backend.load_keras() is old
    assert backend.is_keras_2()
    # It has no other, whatever the variable of Keras 3 says.
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert backend.backend_name() == "tensorflow"


@pytest.mark.parametrize("shortens", [True, False])
def test_only_where_keras_ends_a_validation_early_is_one_shortened(
    monkeypatch, shortens
):
    monkeypatch.setattr(epochs, "_MOMENT_S", 0.0)
    model = SimpleNamespace(stop_evaluating=False)
    validating = epochs.Validating(10, shortens=shortens)
    validating.begin()
    for count in range(1, 4):
        validating.reach(count, model)
    assert model.stop_evaluating is shortens
    told = validating.end(1000)
    assert (told[0] == Pause(epochs.VALIDATION, every=1000)) is not shortens


# The shared start.


def network(*layers, units=3, loss="mse", rate=0.05):
    model = keras.Sequential([*layers, keras.layers.Dense(units, activation="tanh")])
    model.compile(keras.optimizers.SGD(rate), loss)
    return model


def training(model, columns=4, scale=1.0):
    x = np.random.default_rng(1).normal(size=(64, columns)).astype("float32")
    return handed_over((model, (scale * x, x[:, :3]), {"batch_size": 16}))


def begun(folder, *trainings):
    return [backends.first_losses(each, str(folder)) for each in trainings]


def test_the_same_job_has_the_same_losses_from_the_weights_of_the_first(tmp_path):
    one, other = (training(network()) for _ in "ab")
    base, new = begun(tmp_path, one, other)
    assert base == {"losses": new["losses"], "random": False, "half": False}
    assert base["losses"][0] == pytest.approx(base["losses"][1])
    assert base["losses"][3] < base["losses"][1]
    assert backends.compare_starts(new, base) == ""
    # A trial begins where the first side began.
    again = training(network())
    backends.set_weights(again, str(tmp_path))
    x, y = (part[:16] for part in again.data)
    loss = again.model.evaluate(x, y, verbose=0)
    assert loss == pytest.approx(base["losses"][0], rel=1e-4)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lambda: training(network(loss="mae")), "before any step"),
        (lambda: training(network(rate=5.0)), "in step 2"),
        (lambda: training(network(keras.layers.Rescaling(0.5))), "before any step"),
        (lambda: training(network(units=2)), "(4, 2) instead of (4, 3)"),
        (lambda: training(network(), columns=5), "of weights it has (5, 3) instead"),
        (lambda: training(network(keras.layers.Dense(4))), "4 arrays instead of 2"),
    ],
)  # fmt: skip
def test_another_job_is_not_compared_and_the_reason_is_said(tmp_path, other, reason):
    base, new = begun(tmp_path, training(network()), other())
    assert reason in backends.compare_starts(new, base)
    assert backends.compare_starts(base, base) == ""


def test_where_layers_draw_random_numbers_only_the_start_is_compared(tmp_path):
    base, new = begun(
        tmp_path, *(training(network(keras.layers.Dropout(0.5))) for _ in "ab")
    )
    assert base["random"]
    assert backends.compare_starts(new, base) == ""
    far = new | {"losses": [2 * new["losses"][0], *new["losses"][1:]]}
    assert "before any step" in backends.compare_starts(far, base)


STARTED = {"losses": [1.0, 1.0, 0.9, 0.8], "random": False, "half": False}


def test_losses_that_are_no_numbers_and_what_raises_are_reasons(tmp_path):
    broken = STARTED | {"losses": [math.nan] * 4}
    assert "no number instead of 1" in backends.compare_starts(broken, STARTED)
    model = network()
    model.train_on_batch = None
    (raised,) = begun(tmp_path, training(model))
    why = backends.compare_starts(raised, STARTED)
    assert "from the same weights it raised TypeError" in why
    why = backends.compare_starts(STARTED, raised)
    assert "the baseline has no first losses" in why
    # Half precision may round more.
    near = STARTED | {"losses": [1.01, 1.01, 0.91, 0.81]}
    assert backends.compare_starts(near, STARTED)
    assert not backends.compare_starts(near | {"half": True}, STARTED)


# The race.

OTHER = STARTED | {"losses": [2.0, 2.0, 1.9, 1.8]}


def race(new=None, **more):
    known = {OLD: facts(start=STARTED), NEW: facts(**{"start": STARTED} | (new or {}))}
    backends = {OLD: "tensorflow", NEW: "jax"}
    return KerasRace(sides=sides(), facts=known, backends=backends, **more)


def test_the_same_losses_say_more_than_the_names_of_layers():
    renamed = race({"layers": ("Dense", "TFOpLambda")})
    run = measured({OLD: 1000.0, NEW: 2000.0})
    assert renamed.verdict(run).winner == NEW
    assert not renamed.has_other_job(run)
    # A larger batch is another job all the same.
    assert race({"batch": 20}).has_other_job(run)


def test_other_losses_leave_the_sides_not_compared():
    run = measured({OLD: 1000.0, NEW: 2000.0})
    verdict = race({"start": OTHER}).verdict(run)
    assert verdict.winner == ""
    assert "neither is called faster: from the same weights its loss" in (
        verdict.headline
    )
    # Another model explains them by itself.
    verdict = race({"start": OTHER, "parameters": 7}).verdict(run)
    assert "from the same weights" not in verdict.headline


def test_what_is_beside_the_rate_stands_in_a_table():
    notes = {OLD: {FIRST_STEP: 2.0, MEMORY: 5e8}, NEW: {FIRST_STEP: 1.0, MEMORY: 3e8}}
    run = measured({OLD: 1000.0, NEW: 2000.0}, notes=notes)
    beside, job = race().verdict(run).folds
    rows = {label: cells for label, *cells in beside.tables[0].rows}
    assert rows["trains on"] == ["TensorFlow", "JAX"]
    assert rows["until the first step is done"] == ["2 s", "1 s"]
    assert rows["memory, at most"] == ["500 MB", "300 MB"]
    assert "end of an epoch" not in rows
    same = "new.py: from the same weights its loss is the same before any step"
    assert job.sentences[0] == f"{same} and in 3 steps."
    drawing = race({"start": STARTED | {"random": True}})
    assert next(drawing._same_job(run)) == f"{same}."


def test_sides_on_another_keras_make_such_a_race_and_others_none(monkeypatch, tmp_path):
    write(tmp_path, train_py=SCRIPT)
    other = Environment("3.11.7", backend="jax")
    asked = Asked(trainings=(tmp_path / "train.py",), env=("A=1",))
    monkeypatch.setattr(sessions, "environment_of", lambda place: other)
    session = sessions.open_race(asked)
    assert isinstance(session._race, KerasRace)
    assert set(session._race.backends.values()) == {"jax"}
    assert session._race.rounds == BRIEF_ROUNDS
    whole = Asked(trainings=(tmp_path / "train.py",), env=("A=1",), whole=True)
    assert type(sessions.open_race(whole)._race) is WholeRace
    here = Environment("3.11.7")
    monkeypatch.setattr(sessions, "environment_of", lambda place: here)
    assert type(sessions.open_race(asked)._race) is Race


@pytest.mark.parametrize(
    ("line", "is_legacy"),
    [
        ("import tf_keras", True),
        ("from tf_keras import layers", True),
        ("import keras  # not tf_keras", False),
    ],
)
def test_a_script_of_tf_keras_is_raced_with_keras_2(
    monkeypatch, tmp_path, line, is_legacy
):
    (tmp_path / "tf_keras.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path, old_py=f"{line}\n{SCRIPT}", new_py=SCRIPT)
    files = (tmp_path / "old.py", tmp_path / "new.py")
    monkeypatch.setattr(sessions, "environment_of", lambda place: Environment("3.11.7"))
    old, new = sessions.open_race(Asked(trainings=files))._race.sides
    assert (environment.LEGACY in dict(old.place.variables)) is is_legacy
    assert new.place.variables == ()


@pytest.mark.parametrize("look", [perfkit.diagnose, perfkit.lines, perfkit.profile])
def test_what_needs_tensorflows_graphs_refuses_another_backend(tmp_path, look):
    head = 'import os\nos.environ["KERAS_BACKEND"] = "jax"'
    write(tmp_path, train_py=f"{head}\n{SCRIPT}")
    with pytest.raises(MissingPartError, match="Keras trains with jax here, and this"):
        look(str(tmp_path / "train.py"))
