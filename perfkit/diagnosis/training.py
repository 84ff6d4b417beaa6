"""A training as its maker hands it over, held against the contract.

The contract: a function that returns a compiled Keras model and its data, and if it
likes a dict of ``fit``'s arguments. What is wrong with it is said in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from perfkit.diagnosis import rows, settings
from perfkit.diagnosis.own_callbacks import listed
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    import keras

_CONTRACT = "return model, dataset (or model, dataset, {arguments of fit})"
_LOOP = "a loop of its own, marked by `for batch in perfkit.steps(data)`"
_BATCH = 32
KERAS_2 = (
    "tf_keras, which is Keras 2, and perfkit measures Keras 3: import keras in its "
    "place, if the training runs with it."
)


@dataclass
class Training:
    """A training that has not begun; a swap changes it in place.

    Attributes:
        model: Compiled.
        data: A ``tf.data.Dataset`` of batches, a ``PyDataset``, a function that makes a
            generator of batches, or a tuple of arrays.
        arguments: Of ``fit``, but for the data and the epochs.
        epochs: As many as the training was to have.
        settings: Lines that slow it from outside, by cause, as this thread has them.
    """

    # Whether the user's own loop trains on the data, and there is no model.
    loop: ClassVar[bool] = False

    model: keras.Model
    data: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    epochs: int = 1
    settings: dict[str, list[str]] = field(default_factory=settings.here)

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
            _, arguments["validation_data"] = rows.parted(self.data, float(share))
        self.data = dataset
        for name in ("batch_size", "shuffle", "validation_split"):
            arguments.pop(name, None)

    def trace_anew(self) -> None:
        """Forget the step that is traced already, if the maker has trained a little."""
        self.model.train_function = self.model.test_function = None

    def fit(self, callbacks: list[Any], *, epochs: int) -> None:
        """Train; ``callbacks`` take the place of the user's own."""
        options = self.arguments | {"callbacks": callbacks, "epochs": epochs}
        data = self.data() if self.kind == "generator" else self.data
        parts = data if self.kind == "arrays" else (data,)
        named = zip(("x", "y", "sample_weight"), parts, strict=False)
        self.model.fit(**options | dict(named))


def kind_of(data: Any) -> str:
    """Name the kind of the data; "" where it is none that ``fit`` takes."""
    import keras
    import tensorflow as tf

    if isinstance(data, tf.data.Dataset):
        return "tf.data"
    if isinstance(data, keras.utils.PyDataset):
        return "PyDataset"
    if rows.are_arrays(data):
        return "arrays"
    if callable(data):
        return "generator"
    return ""


def made(maker: Callable[[], Any]) -> Training:
    """Call the maker and check what it returns.

    Raises:
        BadParameterError: It returned something that cannot be trained.
        Exception: What the maker raised.
    """
    return handed_over(maker())


def handed_over(returned: Any) -> Training:
    """Check what a maker returned.

    Raises:
        BadParameterError: It is something that cannot be trained.
    """
    import keras

    sound = isinstance(returned, tuple) and len(returned) in (2, 3)
    if not sound or (len(returned) == 3 and not isinstance(returned[2], dict)):
        raise BadParameterError(
            f"The function returned {_described(returned)}; it has to {_CONTRACT}, "
            f"or to run {_LOOP}."
        )
    model, data, *rest = returned
    arguments = dict(rest[0]) if rest else {}
    _check_model(model)
    data, arguments = _data(data, arguments)
    epochs = int(arguments.pop("epochs", None) or 1)
    for name in ("x", "y"):
        arguments.pop(name, None)
    if isinstance(arguments.get("callbacks"), keras.callbacks.CallbackList):
        # Fit adds no progress bar to such a list; what it holds is taken as it is.
        arguments["verbose"] = 0
    arguments["callbacks"] = listed(arguments.get("callbacks"))
    if kind_of(data) == "arrays":
        arguments.setdefault("batch_size", _BATCH)
    return Training(model, data, arguments, epochs)


def _check_model(model: Any) -> None:
    import keras

    if type(model).__module__.startswith("tf_keras."):
        raise BadParameterError(f"The model is one of {KERAS_2}")
    if not isinstance(model, keras.Model):
        raise BadParameterError(
            f"The first thing returned is {_described(model)}, no Keras model; "
            f"{_CONTRACT}."
        )
    if not model.compiled:
        raise BadParameterError(
            "The model is not compiled: call model.compile(optimizer=..., loss=...) "
            "before it is returned."
        )


def _data(data: Any, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if "y" in arguments and not isinstance(data, tuple):
        data = (data, arguments["y"])
    if hasattr(data, "__next__") and not kind_of(data):
        # Each process makes the training anew, so one run of it is enough.
        generator = data
        return lambda: generator, arguments
    if not kind_of(data):
        raise BadParameterError(
            f"The second thing returned is {_described(data)}; give a batched "
            "tf.data.Dataset, a PyDataset, a function that makes a generator, or a "
            "tuple of arrays (x, y)."
        )
    return data, arguments


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        inside = ", ".join(type(part).__name__ for part in value[:4])
        return f"a tuple of {len(value)} ({inside})"
    if value is None:
        return "nothing"
    return f"of type {type(value).__name__}"
