"""A training as its maker hands it over, checked against the contract, and its data.

The contract: a function that returns a compiled Keras model and its data, and if it
likes a dict of ``fit``'s arguments. What is wrong with it is said in one sentence.
"""

import functools
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadParameterError
from perfkit.machine.environment import is_legacy
from perfkit.training.diagnose import settings

if TYPE_CHECKING:
    import keras

_CONTRACT = "return model, dataset (or model, dataset, {arguments of fit})"
# Examples of a step where ``fit`` is given arrays and nothing else.
BATCH = 32
KERAS_2 = (
    "tf_keras, which is Keras 2, but perfkit measures only Keras 3: import keras "
    "instead, if the training runs with it, or compare both with `perfkit race`."
)


# The Keras that it trains with, and how its device is waited for. A diagnosis looks
# into Keras 3 on TensorFlow. A race also takes Keras 2, JAX and PyTorch, so nothing
# that both use imports TensorFlow where the training does not.


def load_keras() -> Any:
    """Return the module ``keras``, or ``tf_keras`` where a variable asks for it."""
    return importlib.import_module("tf_keras" if is_legacy(os.environ) else "keras")


def is_keras_2() -> bool:
    """Whether that is Keras 2, which knows TensorFlow alone."""
    return str(load_keras().__version__).startswith("2.")


def backend_name() -> str:
    """Return what it computes with: ``"tensorflow"``, ``"jax"`` or ``"torch"``."""
    return "tensorflow" if is_keras_2() else str(load_keras().config.backend())


def wait() -> None:
    """Wait until the device has done all that it was given."""
    backend = backend_name()
    library: Any = importlib.import_module(backend)
    if backend == "tensorflow":
        library.test.experimental.sync_devices()
    elif backend == "jax":
        # A step gives its own arrays back to the device, which deletes them.
        arrays = (a for a in library.live_arrays() if not a.is_deleted())
        library.block_until_ready(list(arrays))
    elif backend == "torch" and library.cuda.is_available():
        # On processors PyTorch has done it when a call returns.
        library.cuda.synchronize()


@dataclass
class Training:
    """A training that has not begun; a change is made in place.

    Attributes:
        model: Compiled.
        data: A ``tf.data.Dataset`` of batches, a ``PyDataset`` (in Keras 2 a
            ``Sequence``), a ``DataLoader`` of PyTorch, a function that makes a
            generator of batches, or a tuple of arrays.
        arguments: Of ``fit``, but for the data and the epochs.
        epochs: As many as the training was to have; 0 where nobody said.
        settings: Lines that slow it from outside, by cause, as this thread has them.
        loop: Whether the user's own loop trains on the data, and there is no model.
    """

    model: "keras.Model"
    data: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    epochs: int = 0
    settings: dict[str, list[str]] = field(default_factory=settings.read_settings)
    loop: bool = False

    @property
    def kind(self) -> str:
        """What the data are: ``"tf.data"``, ``"PyDataset"``, ..."""
        return kind_of(self.data)

    def replace_data(self, dataset: Any) -> None:
        """Train on batches of ``tf.data`` instead; validate on the same as before."""
        arguments = self.arguments
        size = arguments.get("validation_batch_size") or arguments.get("batch_size")
        if size:
            arguments["validation_batch_size"] = size
        share = arguments.get("validation_split")
        if share and arguments.get("validation_data") is None:
            _, arguments["validation_data"] = parted(self.data, float(share))
        self.data = dataset
        for name in ("batch_size", "shuffle", "validation_split"):
            arguments.pop(name, None)

    def trace_anew(self) -> None:
        """Forget what is traced already, if the maker has trained a little."""
        model = self.model
        model.train_function = model.test_function = model.predict_function = None

    def fit(self, callbacks: list[Any], *, epochs: int) -> None:
        """Train; ``callbacks`` take the place of the user's own."""
        options = self.arguments | {"callbacks": callbacks, "epochs": epochs}
        data = self.data() if self.kind == "generator" else self.data
        parts = data if self.kind == "arrays" else (data,)
        named_parts = zip(("x", "y", "sample_weight"), parts, strict=False)
        self.model.fit(**options | dict(named_parts))


def handed_over(returned: Any) -> Training:
    """Check what a maker returned; refuse what cannot be trained."""
    keras = load_keras()
    sound = isinstance(returned, tuple) and len(returned) in (2, 3)
    if not sound or (len(returned) == 3 and not isinstance(returned[2], dict)):
        raise BadParameterError(
            f"The function returned {_described(returned)}; it must {_CONTRACT}, or "
            "run a loop of its own, marked by `for batch in perfkit.steps(data)`."
        )
    model, data, *options = returned
    arguments = dict(options[0]) if options else {}
    if not isinstance(model, keras.Model):
        if type(model).__module__.startswith("tf_keras."):
            raise BadParameterError(f"The model comes from {KERAS_2}")
        raise BadParameterError(
            f"The first return value is {_described(model)}, not a Keras model; "
            f"{_CONTRACT}."
        )
    # Keras 2 has no public name for it.
    if not getattr(model, "compiled", getattr(model, "_is_compiled", False)):
        raise BadParameterError(
            "The model is not compiled: call model.compile(optimizer=..., loss=...) "
            "before you return it."
        )
    data = _data(data, arguments)
    epochs = int(arguments.pop("epochs", None) or 0)
    for name in ("x", "y"):
        arguments.pop(name, None)
    if isinstance(arguments.get("callbacks"), keras.callbacks.CallbackList):
        # Fit adds no progress bar to such a list; what it holds is taken as it is.
        arguments["verbose"] = 0
    arguments["callbacks"] = list_callbacks(arguments.get("callbacks"))
    if kind_of(data) == "arrays" and not arguments.get("batch_size"):
        steps = arguments.get("steps_per_epoch")
        share = -(-_trained(data, arguments) // int(steps)) if steps else BATCH
        # As Keras shares the examples out.
        arguments["batch_size"] = share
        size = arguments.get("validation_batch_size")
        arguments["validation_batch_size"] = size or BATCH
    return Training(model, data, arguments, epochs)


def _data(data: Any, arguments: dict[str, Any]) -> Any:
    if "y" in arguments and not isinstance(data, tuple):
        data = (data, arguments["y"])
    if hasattr(data, "__next__") and not kind_of(data):
        # Each process makes the training anew, so one run of it is enough.
        generator = data
        return lambda: generator
    if not kind_of(data):
        raise BadParameterError(
            f"The data of the training are {_described(data)}; give a batched "
            "tf.data.Dataset, a PyDataset, a function that makes a generator, or a "
            "tuple of arrays (x, y)."
        )
    return data


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        inside = ", ".join(type(part).__name__ for part in value[:4])
        return f"a tuple of {len(value)} ({inside})"
    if value is None:
        return "nothing"
    return f"of type {type(value).__name__}"


# Its data, whatever their kind: batches, rows, and what is held back. A batch is a
# structure: tuples, lists and dicts of arrays.


def leaves(data: Any) -> Iterator[Any]:
    """Yield the arrays of a structure, those of a dict in the order of its keys."""
    if isinstance(data, Mapping):
        data = [data[name] for name in sorted(data)]
    if not isinstance(data, tuple | list):
        yield data
        return
    for part in data:
        yield from leaves(part)


def map_leaves(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply a function to each array of a structure, whose lists become tuples."""
    if isinstance(data, Mapping):
        return {name: map_leaves(function, data[name]) for name in sorted(data)}
    if isinstance(data, tuple | list):
        return tuple(map_leaves(function, part) for part in data)
    return function(data)


def kind_of(data: Any) -> str:
    """Name the kind of the data; "" where it is none that ``fit`` takes."""
    tf, torch = (sys.modules.get(name) for name in ("tensorflow", "torch"))
    if tf and isinstance(data, tf.data.Dataset):
        return "tf.data"
    # Keras 3 calls it so as well.
    if isinstance(data, load_keras().utils.Sequence):
        return "PyDataset"
    if torch and isinstance(data, torch.utils.data.DataLoader):
        return "DataLoader"
    if _are_arrays(data):
        return "arrays"
    if callable(data):
        return "generator"
    return ""


def first_batch(training: Training) -> Any:
    """A batch as a step is given it; ``StopIteration`` where there is none."""
    if training.kind in ("tf.data", "DataLoader"):
        return next(iter(training.data))
    if training.kind == "PyDataset":
        item = training.data[0]
        # Keras takes a list for a tuple; tf.data would make one tensor of it.
        return tuple(item) if isinstance(item, list) else item
    if training.kind == "generator":
        return next(iter(training.data()))
    return as_batches(_part(training.data, slice(training.arguments["batch_size"])))


def examples_in(batch: Any) -> int:
    """Count the examples of a batch; 1 where it does not tell."""
    shapes: Any = (getattr(part, "shape", ()) for part in leaves(batch))
    # A number that comes with a batch, such as that of the step, has no examples.
    return next((int(shape[0]) for shape in shapes if len(shape)), 1)


def steps_of(training: Training) -> int | None:
    """Steps of an epoch; None where nobody knows."""
    steps = training.arguments.get("steps_per_epoch")
    if steps:
        return int(steps)
    if training.kind != "arrays":
        return _batches_of(training.data)
    examples = _trained(training.data, training.arguments)
    return -(-examples // int(training.arguments["batch_size"]))


def updates_once(model: Any) -> bool:
    """Whether the optimizer counts every step: it is Keras's own, with one update."""
    plain = load_keras().Model.train_step
    custom = getattr(model.train_step, "__func__", None) is not plain
    # Shorter floats have theirs wrapped.
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    gathers = getattr(optimizer, "gradient_accumulation_steps", None)
    return bool(not custom and optimizer and not gathers)


def _trained(data: Any, arguments: dict[str, Any]) -> int:
    """How many examples of arrays are not held back for validation."""
    return int(_count(data) * (1 - float(arguments.get("validation_split") or 0)))


def metrics_of(model: Any) -> tuple[str, ...]:
    """Names of the metrics that a model was compiled with, the loss apart."""
    # Its configuration holds them, too, and is made of all else that was compiled:
    # not every loss, metric and schedule can be put into words.
    compiled = getattr(model, "_compile_metrics", None)
    metrics = leaves(getattr(compiled, "_user_metrics", None))
    return tuple(name_of_metric(leaf)[:60] for leaf in metrics if leaf is not None)


def name_of_metric(metric: Any) -> str:
    """What a metric of ``compile`` is called, in whatever way it was given."""
    names = (getattr(metric, at, None) for at in ("name", "__name__"))
    texts = (name for name in (metric, *names) if isinstance(name, str))
    return next(texts, type(metric).__name__)


def epochs_between(arguments: dict[str, Any]) -> float:
    """Epochs from one validation to the next; 0 where the training has none."""
    has_data = arguments.get("validation_data") is not None
    if not has_data and not arguments.get("validation_split"):
        return 0.0
    frequency = arguments.get("validation_freq", 1)
    if isinstance(frequency, int):
        return float(frequency)
    epochs = list(frequency)
    return max(epochs) / len(epochs) if epochs else 0.0


def validation_steps(arguments: dict[str, Any], data: Any) -> int | None:
    """Steps of a validation; None where nobody knows, and 0 where there is none.

    Of the data that are trained on a part may be held back.
    """
    if not epochs_between(arguments):
        return 0
    if steps := arguments.get("validation_steps"):
        return int(steps)
    validation = arguments.get("validation_data")
    if validation is None:
        examples = _count(data) - _trained(data, arguments)
    elif _are_arrays(validation):
        examples = _count(validation)
    else:
        return _batches_of(validation)
    size = arguments.get("validation_batch_size") or arguments.get("batch_size")
    return -(-examples // int(size or BATCH))


def _batches_of(data: Any) -> int | None:
    """How many batches data have that are none of arrays; None where nobody knows."""
    kind = kind_of(data)
    if kind == "tf.data":
        count = int(data.cardinality())
        return count if count > 0 else None
    if kind == "PyDataset" and hasattr(data, "num_batches"):
        return None if data.num_batches is None else int(data.num_batches)
    return len(data) if kind in ("PyDataset", "DataLoader") else None


# Arrays as ``fit`` takes them: any structure whose leaves have a row per example.


def _are_arrays(data: Any) -> bool:
    """Whether these are arrays: a tuple or list of them, or of structures of them."""
    if not isinstance(data, tuple | list):
        return False
    # Sample weights that are None are none.
    arrays = [leaf for leaf in leaves(data) if leaf is not None]
    return bool(arrays) and all(hasattr(array, "shape") for array in arrays)


def _count(data: Any) -> int:
    # What is sparse or ragged has a shape and no length.
    return int(next(leaves(data)).shape[0])


def as_batches(data: Any) -> Any:
    """The same as ``fit`` hands it to a step: what is alone is in no tuple."""
    data = map_leaves(_as_tensor, data)
    alone = isinstance(data, tuple) and len(data) == 1
    return data[0] if alone and not isinstance(data[0], tuple | list) else data


def parted(data: Any, share: float) -> tuple[Any, Any]:
    """What is trained on and what is held back, as ``validation_split`` parts them."""
    trained = int(_count(data) * (1 - share))
    return _part(data, slice(trained)), _part(data, slice(trained, None))


def _part(data: Any, rows: slice) -> Any:
    """Some examples of arrays; lists become tuples, as ``tf.data`` needs them."""
    # A table of pandas takes numbers for what its rows are called.
    return map_leaves(
        lambda array: None if array is None else getattr(array, "iloc", array)[rows],
        data,
    )


def _as_tensor(array: Any) -> Any:
    """What Keras makes of a table; all else as it is."""
    if hasattr(array, "iloc"):
        values = array.to_numpy()
        # Keras makes a column of a series.
        return values[:, None] if values.ndim == 1 else values
    return array


# Its callbacks in a trial. They do their work and nothing else: they end no trial, they
# get the epoch numbers of a real training, and Keras's own write to a folder of the
# trial. A callback of the user's own making writes where its code says.

# They reach other machines, or write in the background beyond a trial's end.
LEFT_OUT = frozenset({"OrbaxCheckpoint", "RemoteMonitor"})
_NEVER = 10**9
# What stands for the epoch or a metric in a file's name. One file is written over and
# over, because a trial has many short epochs and a checkpoint may be large.
_PLACES = re.compile(r"\{[^}]*\}")
# Keras calls the second of each pair through the first.
STEP_HOOKS = (
    *("on_train_batch_begin", "on_batch_begin"),
    *("on_train_batch_end", "on_batch_end"),
)


def list_callbacks(callbacks: Any) -> list[Any]:
    """List callbacks as ``fit`` takes them: one, a list, or a ``CallbackList``."""
    if callbacks is None:
        return []
    if isinstance(callbacks, load_keras().callbacks.CallbackList):
        callbacks = callbacks.callbacks
    if isinstance(callbacks, list | tuple):
        return [callback for part in callbacks for callback in list_callbacks(part)]
    return [callbacks]


def prepare_callbacks(callbacks: list[Any], epochs: int) -> list[Any]:
    """Make callbacks fit for a trial; None among them, and what is left out, is not.

    Epochs of a trial may be shorter than the real ``epochs``, and so more of them:
    their numbers begin again after these.
    """
    prepared = [c for c in callbacks if c is not None and not left_out(c)]
    keras_callbacks = load_keras().callbacks
    for index, callback in enumerate(prepared):
        # It ends no training, and does not do what it does only at the end.
        if isinstance(callback, keras_callbacks.EarlyStopping):
            callback.patience = _NEVER
        if isinstance(callback, keras_callbacks.TerminateOnNaN):
            callback.raise_error = False
        _write_elsewhere(callback, index)
        for hook in ("on_epoch_begin", "on_epoch_end"):
            _renumber(callback, hook, epochs)
    return prepared


def left_out(callback: Any) -> bool:
    """Whether no trial runs this callback."""
    return any(kind.__name__ in LEFT_OUT for kind in type(callback).__mro__)


def overrides(callback: Any, *hooks: str) -> bool:
    """Whether it does something in one of these hooks."""
    return any(not hasattr(getattr(callback, hook), "_is_default") for hook in hooks)


def see_every_step(callbacks: list[Any], epoch: int | None, times: int = 1) -> None:
    """Call callbacks as often as before, or their cost would look like another's.

    An epoch had so many steps, None where nobody knows; ``times`` as many are in each
    step now.
    """
    for callback in callbacks:
        if callback is not None and overrides(callback, *STEP_HOOKS):
            _see_every_step(callback, epoch, times)


def _see_every_step(callback: Any, epoch: int | None, times: int) -> None:
    begin, end = callback.on_train_batch_begin, callback.on_train_batch_end
    reached = 0

    def begun(step: int, logs: Any = None) -> None:
        nonlocal reached
        reached = step * times
        begin(reached, logs)

    def ended(step: int, logs: Any = None) -> None:
        last = (step + 1) * times
        for batch in range(reached, min(last, epoch or last)):
            if batch > reached:
                begin(batch, None)
            end(batch, logs)

    callback.on_train_batch_begin, callback.on_train_batch_end = begun, ended


def _renumber(callback: Any, hook: str, epochs: int) -> None:
    method = getattr(callback, hook)
    if not overrides(callback, hook):
        return

    @functools.wraps(method)
    def numbered(epoch: int, logs: Any = None) -> None:
        method(epoch % max(1, epochs), logs)

    setattr(callback, hook, numbered)


def _write_elsewhere(callback: Any, index: int) -> None:
    keras_callbacks = load_keras().callbacks
    places = {
        keras_callbacks.ModelCheckpoint: "filepath",
        keras_callbacks.CSVLogger: "filename",
        keras_callbacks.TensorBoard: "log_dir",
        keras_callbacks.BackupAndRestore: "backup_dir",
    }
    place = next((at for kind, at in places.items() if isinstance(callback, kind)), "")
    if not place:
        return
    # It goes with the trial's own.
    old, new = str(getattr(callback, place)), tempfile.mkdtemp(prefix=f"{index}-")
    if not place.endswith("_dir"):
        name = os.path.basename(old)
        if place == "filepath":
            name = _PLACES.sub("n", name)
        setattr(callback, place, os.path.join(new, name))
        return
    # Every path that it holds under the one folder lies under the other.
    for name, value in list(vars(callback).items()):
        if isinstance(value, str | os.PathLike) and str(value).startswith(old):
            setattr(callback, name, new + str(value)[len(old) :])
