"""What a script does with Keras and TensorFlow, heard at their public entry points.

Objects remember the line that made them, calls are counted by the line that made the
call, and each operation of a graph that was traced is charged to a line at once: the
graph may be gone when somebody asks.
"""

import functools
import importlib
import itertools
import math
import re
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from types import FrameType
from typing import Any

from perfkit.findings.account import READ_EVERY
from perfkit.training.account import places
from perfkit.training.account.memory import MemoryReadings, fills_up
from perfkit.training.account.places import Kind, Place, outwards, place_of
from perfkit.training.diagnose import settings
from perfkit.training.diagnose.loop import LIBRARIES, package_at
from perfkit.training.diagnose.tracing import Tracing

# In the name of a dataset, before the number of the stage.
STAGE = "perfkit:"
_LAYER = "keras/src/layers/layer.py"
_TRAINER = "keras/src/backend/tensorflow/trainer.py"
_ADAPTERS = "/keras/src/trainers/data_adapters/"
_TAPE = "tensorflow/python/eager/backprop.py"
_SUMS = frozenset({"AddN", "ConcatV2", "UnsortedSegmentSum"})
# Among the settings: what a model was compiled with.
EAGER_STEPS = "run_eagerly=True"
# Before the name of an operation whose gradient one is.
GRADIENT = "gradient_tape/"
_PART = re.compile(r"keras/src/(metrics|losses|optimizers)/")
_PARTS = {"metrics": "metric", "losses": "loss", "optimizers": "optimizer"}
_GRAPHS = "tensorflow.python.framework.func_graph"
# What Grappler fuses: a product or a convolution, and up to so many after it.
_CONTRACTIONS = frozenset(
    ("MatMul", "BatchMatMulV2", "Conv2D", "Conv3D", "DepthwiseConv2dNative")
)
_FUSIBLE = frozenset(
    ("Add", "AddV2", "BiasAdd", "Elu", "FusedBatchNormV3", "LeakyRelu", "Relu", "Tanh")
)
_MOST_FUSED = 3
_MOST_OPERATIONS = 200_000
# All operations of a jacobian are its own, whatever they are derived from.
JACOBIAN, _JACOBIANS = "jacobian", ("jacobian", "batch_jacobian")
# So many updates of the weights tell what repeats.
ENOUGH_UPDATES = 20


# Of an operation in a graph: the innermost line of the user's that made it; how many
# layers of Keras that line called, one within the other; whether Keras's own loop made
# it; the elements of its result, 0 for unknown; what of Keras made it, such as
# ``"metric"``; and the product or convolution that it may be fused with, or the
# gradient that it adds to others.
Origin = tuple[Place | None, int, bool, int, str, str]


@dataclass
class Trace:
    """A function that was traced, and all that it calls.

    Attributes:
        place: The line that called for it.
        at: When it began, on ``time.perf_counter``.
        trains: Whether gradients are taken in it.
        backward: Lines that asked for gradients while it was traced, one for each time;
            None where an optimizer changes the weights between two of them.
    """

    name: str
    place: Place | None
    at: float
    seconds: float = 0.0
    trains: bool = False
    backward: list[Place | None] = field(default_factory=list)


@dataclass
class Watch:
    """Hears what a script does; to be put in place before it runs.

    Nothing here holds what the training would let go of: memory would not come back.

    Attributes:
        makers: Lines that made an object, by its kind and name.
        stages: Lines and kinds of the stages of ``tf.data``, by their number.
        calls: How often a line called a public method of Keras.
        runs: How often lines called functions of a name.
        iterators: How many iterators over a dataset a line made.
        traces: Every trace that no other one was part of.
        operations: By the function that was traced, then by their names.
        epochs: Seconds on ``time.perf_counter`` at which each epoch began and ended.
        models: How many each line made.
        new_models: How many a line had made in a loop since the training began.
        optimizers: Updates of each, as far as they were counted.
        steps: Of ``fit``, as its callbacks count them.
        trained_at: When gradients were taken for the first time; 0.0 for never.
        gradients: How often they were taken outside of a graph.
        setters: The line that set each setting of ``diagnosis.settings``.
        padded: By the line that pads: which share of what it gives is padding.
        policy: Of a type in which this machine computes slowly; "" for none.
    """

    makers: dict[tuple[str, str], Place] = field(default_factory=dict)
    callbacks: dict[int, Place] = field(default_factory=dict)
    stages: list[tuple[Place | None, str]] = field(default_factory=list)
    calls: Counter[tuple[Place, str]] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    iterators: Counter[Place] = field(default_factory=Counter)
    traces: list[Trace] = field(default_factory=list)
    operations: dict[str, dict[str, Origin]] = field(default_factory=dict)
    epochs: list[list[float]] = field(default_factory=list)
    memory: MemoryReadings = field(default_factory=MemoryReadings)
    models: Counter[Place] = field(default_factory=Counter)
    new_models: Counter[Place] = field(default_factory=Counter)
    optimizers: dict[Any, int] = field(default_factory=dict)
    layers: dict[str, Any] = field(default_factory=dict)
    setters: dict[str, Place] = field(default_factory=dict)
    padded: dict[Place, float] = field(default_factory=dict)
    policy: str = ""
    classes: dict[str, str] = field(default_factory=dict)
    is_tracing: bool = False
    steps: int = 0
    trained_at: float = 0.0
    gradients: int = 0
    anew: Tracing = field(default_factory=Tracing)
    _within: threading.local = field(default_factory=threading.local)

    def begin(self) -> None:
        """Put all of it in place."""
        import keras
        import tensorflow as tf

        places.note_makers(self.note_made)
        for owner in (keras.Model, type(tf.function(lambda: None))):
            self._count_calls(owner)
        self._name_stages(tf.data.Dataset)
        _hook(tf.data.Dataset, "__iter__", before=self._note_pass)
        epochs, tape = keras.callbacks.CallbackList, tf.GradientTape
        _hook(epochs, "on_epoch_begin", before=self._begin_epoch)
        _hook(epochs, "on_epoch_end", after=self._end_epoch)
        _hook(epochs, "on_train_batch_end", before=self._count_step)
        for name in ("gradient", *_JACOBIANS):
            # The sampler skips the frames of hooks, so that it finds ``gradient``.
            _hook(tape, name, before=self._note_gradient)
        for name in _JACOBIANS:
            setattr(tape, name, _marked(getattr(tape, name)))
        _hook(keras.optimizers.Optimizer, "apply", before=self._note_update)
        _hook(tape, "__enter__", before=lambda tape: self._tapes().append(tape))
        _hook(tape, "__exit__", before=lambda tape, *_: self._tapes().remove(tape))
        tf.data.Iterator.__del__ = _end_pass
        _scope_penalties(keras.layers.Layer)
        settings.note_setters(self._note_setting)
        self._note_padding(keras.src.utils.sequence_utils.pad_sequences)
        graphs: Any = importlib.import_module(_GRAPHS)
        graphs.func_graph_from_py_func = self._tracing(graphs.func_graph_from_py_func)
        self.anew.look()

    def updates(self) -> int:
        """Return the updates of weights, by optimizers, ``fit`` and gradients."""
        for reference in list(self.optimizers):
            try:
                self.optimizers[reference] = int(reference().iterations.numpy())
            except Exception:
                # One under a strategy, still being made, or gone has no number.
                continue
        # Weights that a function changes by itself are counted by no optimizer.
        trains = {trace.name for trace in [*self.traces] if trace.trains}
        runs = sum(self.runs[name] for name in trains)
        return max(sum(self.optimizers.values()), self.steps, self.gradients, runs)

    @property
    def events(self) -> int:
        """How often a step ended, or something of Keras or TensorFlow was called."""
        return self.steps + self.gradients + sum({**self.calls}.values())

    def as_note(self) -> dict[str, Any]:
        """Return everything that was heard, as JSON.

        The training goes on meanwhile, so what it adds to is copied first.
        """
        anew = [*self.anew.traces]
        return {
            "made": [[kind, name, *p] for (kind, name), p in _pairs(self.makers)],
            "stages": [[place, kind] for place, kind in [*self.stages]],
            "calls": [[*p, name, n] for (p, name), n in _pairs(self.calls)],
            "iterators": [[*place, count] for place, count in _pairs(self.iterators)],
            "traces": [asdict(trace) for trace in [*self.traces]],
            "signatures": [[trace.name, trace.arguments] for trace in anew],
            "definitions": {
                trace.name: trace.definition
                for trace in anew
                if trace.definition and places.is_own(trace.definition[0])
            },
            "operations": {name: {**parts} for name, parts in _pairs(self.operations)},
            "frozen": [*dict.fromkeys(self._frozen())],
            "classes": {**self.classes},
            "settings": [*self._settings()],
            "padded": [[*place, share] for place, share in _pairs(self.padded)],
            "epochs": self.epochs,
            "memory": [[*key, ends] for key, ends in _pairs(self.memory.bytes_at)],
            "models": [[*place, count] for place, count in _pairs(self.models)],
            "new_models": [[*place, n] for place, n in _pairs(self.new_models)],
            "fills": fills_up([kind for _, kind in self.stages]),
            "updates": self.updates(),
        }

    def _settings(self) -> Iterator[tuple[str, Place | None]]:
        """Yield what is set that slows a training, and by which line."""
        lines = [*chain.from_iterable(settings.read_settings().values())]
        models = (reference() for reference in list(self.layers.values()))
        if any(getattr(model, "run_eagerly", False) for model in models):
            yield EAGER_STEPS, self.makers.get(("compile", ""))
        if self.policy:
            lines.append(settings.TYPE_POLICY.line.format(self.policy))
        for line in lines:
            yield line, self.setters.get(line.partition("(")[0])

    def _frozen(self) -> Iterator[str]:
        """Layers with weights that are not trained, those of frozen models too."""
        for reference in list(self.layers.values()):
            layer = reference()
            try:
                if layer is not None and not layer.trainable:
                    parts = layer._flatten_layers()
                    yield from (part.name for part in parts if part.weights)
            except Exception:
                # A layer of the user's own may raise anything.
                continue

    def note_made(self, item: Any, kind: str, place: Place | None) -> None:
        """Note the line that made an object of Keras."""
        if place is None:
            return
        if kind == "callback":
            self.callbacks.setdefault(id(item), place)
            return
        name = str(getattr(item, "name", ""))
        self.makers.setdefault((kind, name), place)
        if kind == "layer":
            self.layers[name] = weakref.ref(item)
            self.classes[name] = type(item).__name__
            if hasattr(item, "train_step"):
                self.models[place] += 1
                asking = places.asking(sys._getframe(1), item)
                if self.trained_at and asking:
                    self.new_models[asking] += 1
        if kind == "optimizer":
            self.optimizers[weakref.ref(item)] = 0

    def _count_calls(self, owner: Any) -> None:
        # Of what is inherited that of Keras's own bases alone.
        for name in dir(owner):
            public = not name.startswith("_") or name == "__call__"
            bare = isinstance(vars(owner).get(name), staticmethod | classmethod)
            if public and hasattr(getattr(owner, name, None), "__code__") and not bare:
                end = functools.partial(self._note_end, name)
                after = {"after": end} if name in READ_EVERY else {}
                _hook(owner, name, functools.partial(self._note_call, name), **after)

    def _caller(self) -> Place | None:
        """The line of the user's that called what is hooked; None for a library's."""
        frame = sys._getframe(3)
        return place_of(frame) if places.role(frame.f_code) == Kind.USER else None

    def _note_call(self, name: str, item: Any = None, *_: Any) -> None:
        if place := self._caller():
            self.calls[place, name] += 1
            self.runs[getattr(item, "__name__", "")] += name == "__call__"
            if name == "compile":
                self.makers["compile", ""] = place

    def _note_end(self, name: str, *_: Any) -> None:
        if place := self._caller():
            self.memory.note_end(name, place)

    def _name_stages(self, owner: Any) -> None:
        plain = owner._metadata

        def metadata(dataset: Any) -> Any:
            options = plain.fget(dataset)
            # The stages in which Keras feeds arrays are nobody's to change.
            inner = itertools.takewhile(_is_others, outwards(sys._getframe(1)))
            is_keras = any(_ADAPTERS in frame.f_code.co_filename for frame in inner)
            place = None if is_keras else places.place(sys._getframe(1))
            options.name = f"{STAGE}{len(self.stages)}".encode()
            self.stages.append((place, type(dataset).__name__))
            return options

        owner._metadata = property(metadata)

    def _note_pass(self, _: Any) -> None:
        # A pass of the user's own begins where the one before it has ended; one of
        # Keras's is in a ``fit``.
        for frame in outwards(sys._getframe(1)):
            if places.role(frame.f_code) == Kind.USER:
                place = place_of(frame)
                self.memory.note_end("pass", place)
                self.iterators[place] += 1
                break
            if package_at(frame) in LIBRARIES:
                break

    def _begin_epoch(self, *_: Any) -> None:
        self.epochs.append([time.perf_counter(), 0.0])

    def _end_epoch(self, *_: Any) -> None:
        if self.epochs:
            self.epochs[-1][1] = time.perf_counter()
            self.memory.note_end("epoch", places.place(sys._getframe(1)))

    def _count_step(self, *_: Any) -> None:
        self.steps += 1

    def _note_gradient(self, tape: Any, *_: Any) -> None:
        self.trained_at = self.trained_at or time.perf_counter()
        trace = getattr(self._within, "trace", None)
        if trace is None:
            self.gradients += 1
            return
        trace.trains = True
        others = [other for other in self._tapes() if other is not tape]
        # A derivative of a derivative is no pass that could be spared.
        if not others and (place := self._traced_place()):
            trace.backward.append(place)

    def _note_update(self, *_: Any) -> None:
        if trace := getattr(self._within, "trace", None):
            trace.backward.append(None)

    def _tapes(self) -> list[Any]:
        """The tapes that record in this thread."""
        tapes: list[Any] = vars(self._within).setdefault("tapes", [])
        return tapes

    def _traced_place(self) -> Place | None:
        """The line of the user's at work, where AutoGraph has rewritten it too."""
        stack: Any = importlib.import_module("tensorflow.python.util.tf_stack")
        frames = reversed(_frames(stack.extract_stack()))
        lines = ((frame.filename, frame.lineno) for frame in frames)
        return next((at for at in lines if places.is_own(at[0])), None)

    def _note_setting(self, name: str, frame: FrameType) -> None:
        if place := places.place(frame):
            self.setters[name] = place
        if name in settings.TYPE_POLICY.setters:
            # Keras keeps it for each thread apart.
            self.policy = str(settings.TYPE_POLICY.value())

    def _note_padding(self, original: Callable[..., Any]) -> None:
        @functools.wraps(original)
        def pad(sequences: Any, *args: Any, **kwargs: Any) -> Any:
            padded = original(sequences, *args, **kwargs)
            place = places.place(sys._getframe(1))
            rows, length = padded.shape[:2]
            if place and rows and length:
                filled = sum(min(len(sequence), length) for sequence in sequences)
                self.padded[place] = 1 - filled / (rows * length)
            return padded

        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("keras"):
                for name, value in list(vars(module).items()):
                    if value is original:
                        setattr(module, name, pad)

    def _tracing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def traced(name: str, *args: Any, **kwargs: Any) -> Any:
            within = self._within
            if getattr(within, "trace", None) is not None:
                graph = original(name, *args, **kwargs)
                within.graphs.append(graph)
                return graph
            place = places.place(sys._getframe(1))
            within.trace = trace = Trace(str(name), place, time.perf_counter())
            within.graphs = graphs = []
            self.is_tracing = True
            try:
                graph = original(name, *args, **kwargs)
                graphs.append(graph)
            finally:
                within.trace, within.graphs = None, []
                self.is_tracing = False
                trace.seconds = time.perf_counter() - trace.at
                self.traces.append(trace)
            # The line of each operation is noted, and no graph is kept.
            operations = self.operations.setdefault(trace.name, {})
            for operation in (o for graph in graphs for o in graph.get_operations()):
                name = operation.name
                if name not in operations and len(operations) < _MOST_OPERATIONS:
                    operations[name] = self._charged(operation)
            return graph

        return traced

    def _charged(self, operation: Any) -> Origin:
        place, layers, in_fit, part = None, 0, False, ""
        source = contraction(operation) or _summand(operation)
        for frame in reversed(_frames(operation.traceback)):
            file = frame.filename
            if places.is_own(file):
                place = file, frame.lineno
                break
            if file.endswith(_LAYER):
                layers += frame.name == "__call__"
            elif file.endswith(_TRAINER):
                in_fit = True
            elif file == __file__ and frame.name == _MARK:
                part = JACOBIAN
            elif match := _PART.search(file):
                part = part or _PARTS[match[1]]
        return place, layers, in_fit, _elements(operation), part, source


def contraction(operation: Any) -> str:
    """The product or convolution that one may be fused with, by name; "" for none.

    Grappler makes one operation of a product, its bias and its activation, and calls it
    as the last of them is called.
    """
    fusible = [operation]
    for _ in range(_MOST_FUSED):
        fusible = [one for one in fusible if one.type in _FUSIBLE]
        fusible = [tensor.op for one in fusible for tensor in list(one.inputs)[:2]]
        for source in fusible:
            if source.type in _CONTRACTIONS:
                return str(source.name)
    return ""


def _summand(operation: Any) -> str:
    """The gradient that a tape adds to others there, by name; "" for none."""
    if operation.type not in _SUMS or GRADIENT in operation.name:
        return ""
    is_tapes = any(frame.filename.endswith(_TAPE) for frame in operation.traceback)
    sources = [operation] if is_tapes else []
    for _ in range(_MOST_FUSED):
        sources = [tensor.op for source in sources for tensor in source.inputs]
        for source in sources:
            if GRADIENT in source.name:
                return str(source.name)
    return ""


def _is_others(frame: FrameType) -> bool:
    return places.role(frame.f_code) != Kind.USER


def _pairs(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return what a mapping holds now: C copies it before another thread goes on.

    Making the pairs may collect garbage, and so let the other thread go on.
    """
    return list({**mapping}.items())


def _hook(
    owner: Any,
    name: str,
    before: Callable[..., object] = lambda *_: None,
    after: Callable[..., object] = lambda *_: None,
) -> None:
    """Call something before and after each call of a method, with its arguments."""
    original = getattr(owner, name)

    # The sampler skips frames of this name.
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        before(*args)
        try:
            return original(*args, **kwargs)
        finally:
            after(*args)

    setattr(owner, name, call)


def _marked(original: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose operations have a frame of this name."""

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return wrapped


_MARK = "wrapped"


def _end_pass(iterator: Any) -> None:
    """Let an iterator go here, where the sampler sees how long that takes.

    It waits for the autotuner of ``tf.data``, which may sleep for up to a minute if it
    misses the call to end: more often while a processor is busy, so while this looks.
    """
    vars(iterator).pop("_iterator_resource", None)


def _scope_penalties(layer: Any) -> None:
    """Let operations of regularizers have the layer of their weight in their names."""
    original = getattr(layer, "_get_regularization_losses", None)
    if original is None:
        return

    @functools.wraps(original)
    def penalties(self: Any) -> Any:
        for weight in self.trainable_weights:
            penalty, scope = weight.regularizer, weight.path.rpartition("/")[0]
            if penalty is not None and getattr(penalty, "func", None) is not _scoped:
                weight.regularizer = functools.partial(_scoped, penalty, scope)
        return original(self)

    layer._get_regularization_losses = penalties


def _scoped(penalty: Callable[[Any], Any], scope: str, weight: Any) -> Any:
    import tensorflow as tf

    with tf.name_scope(scope):
        return penalty(weight)


def _frames(stack: Any) -> list[Any]:
    """Return the frames of a traceback, which is a list in some versions."""
    read = getattr(stack, "get_user_frames", None)
    return list(read() if read else stack or ())


def _elements(operation: Any) -> int:
    try:
        return int(math.prod(operation.outputs[0].shape))
    except (IndexError, TypeError, ValueError, AttributeError):
        return 0
