"""What does it cost to read many small files: cold, warm, or packed into a few?

The suspect: each file is looked up and opened, and a disk that is asked for little at a
time waits more than it reads. The test: read the same examples as files and as TFRecord
shards, from memory and from a disk whose files the system was asked to forget.
"""

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.trial import READY, REFUSED, Note, Pause, Yielded, every
from perfkit.errors import BadFileError
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.base import Experiment, Range
from perfkit.questions.shared import benchmark, cache, tf
from perfkit.questions.shared.verdicts import Race, Ways, choices_of, raced

_SHARDS, _BATCH, _BATCHES_A_NOTE = 8, 64, 8
# The note of the share of a pass that came from the disk; below this it was not cold.
_FROM_DISK, _COLD_SHARE = "from the disk", 0.5
_REMEMBERS = "this system cannot forget the files that it has read"
_NOT_COLD = "The cold runs were not cold: the system kept files in memory."


def _from_files(paths: list[str]) -> Any:
    files = tf.data.Dataset.from_tensor_slices(paths)
    return files.map(tf.io.read_file, num_parallel_calls=tf.data.AUTOTUNE)


def _from_shards(paths: list[str]) -> Any:
    return tf.data.TFRecordDataset(paths, num_parallel_reads=tf.data.AUTOTUNE)


_WAYS: Ways = {
    "files, cold": (_from_files, "Read a file for each example."),
    "shards, cold": (_from_shards, "Pack the examples into TFRecord shards."),
    "files, warm": (_from_files, "Read files that memory holds."),
    "shards, warm": (_from_shards, "Read shards that memory holds."),
}
_COLD = ("files, cold", "shards, cold")


@dataclass(frozen=True, kw_only=True)
class SmallFiles(Experiment):
    """What does it cost to read many small files: cold, warm, or packed into a few?"""

    count: Annotated[int, Range(100, 200_000, unit="files", help="Examples")] = 2_000
    size: Annotated[int, Range(1, 1000, unit="kB", help="Of each example")] = 8

    name = "small-files"
    baseline = "files, cold"
    choices: ClassVar = choices_of(_WAYS)

    def make_variants(self) -> Mapping[str, Variant]:
        """Files and shards, each from the disk and from memory."""
        against = dict.fromkeys(_WAYS, self.baseline) | {"shards, warm": "files, warm"}
        return raced(self._read, _WAYS, against)

    def prepare(self) -> Iterator[Yielded]:
        """Write the files, once, and see whether the system can be asked to forget."""
        benchmark.without_gpus()
        size = self.count * self.size * 1000
        for name in _WAYS:
            make, folder = functools.partial(self._write, name), self._folder(name).name
            yield from cache.make(folder, make, size=size, label=f"examples as {name}")
        if not hasattr(os, "posix_fadvise"):
            yield Note(REFUSED, dict.fromkeys(_COLD, _REMEMBERS))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say whether to pack, and whether what counts as cold came from the disk."""
        facts, warnings = list[Fact](), tuple[str, ...]()
        for name in _WAYS:
            notes = (trial.notes.get(_FROM_DISK) for trial in measured.trials_of(name))
            if shares := [share for share in notes if share is not None]:
                ends = f"{units.percent(min(shares))} to {units.percent(max(shares))}"
                facts.append(Fact(f"{name}: came from the disk", ends))
                if name in _COLD and min(shares) < _COLD_SHARE:
                    warnings = (_NOT_COLD,)
        # Passes that were all warm would show no winner, so this is said then too.
        verdict = self.race(measured).verdict(facts=tuple(facts))
        return replace(verdict, warnings=warnings)

    def race(self, measured: Measurement) -> Race:
        """Whether to pack what is read from the disk."""
        cold = {name: self.choices[name] for name in _COLD}
        return Race(measured, cold, "examples", "Reading")

    def _folder(self, name: str) -> Path:
        return cache.folder() / f"examples-{name}-{self.count}-{self.size}"

    def _read(self, name: str) -> Iterator[Yielded]:
        read, folder = _WAYS[name][0], self._folder(name)
        paths = sorted(str(path) for path in folder.glob("*.*"))
        if len(paths) != (_SHARDS if read is _from_shards else self.count):
            raise BadFileError(f"Files are missing: remove {folder} and run again.")
        # The length of an example is known once all of it is read.
        batches = read(paths).map(tf.strings.length).batch(_BATCH)
        yield READY
        yield from every(self._passes(batches, paths if name in _COLD else []))

    def _passes(self, batches: Any, cold: list[str]) -> Iterator[int | Pause | Note]:
        while True:
            if cold:
                yield benchmark.forget(cold)
            before, examples = benchmark.bytes_from_disk(), 0
            for number, lengths in enumerate(batches, start=1):
                examples += len(lengths)
                yield len(lengths)
                is_due = number % _BATCHES_A_NOTE == 0 or examples >= self.count
                if is_due and before is not None:
                    share = ((benchmark.bytes_from_disk() or 0) - before) / examples
                    yield Note(_FROM_DISK, min(1.0, share / (self.size * 1000)))

    def _write(self, name: str, into: Path) -> Iterator[Note]:
        size = self.size * 1000
        for part in range(_SHARDS):
            yield Note("progress", f"Writing {name}: part {part + 1} of {_SHARDS}")
            # Noise, so that no file system can make it smaller.
            examples = (os.urandom(size) for _ in range(part, self.count, _SHARDS))
            if _WAYS[name][0] is _from_shards:
                with tf.io.TFRecordWriter(str(into / f"{part}.tfrecord")) as writer:
                    for example in examples:
                        writer.write(example)
            for number, example in enumerate(examples):
                (into / f"{number:06d}-{part}.bin").write_bytes(example)
        # What is not on the disk yet is not forgotten; file by file takes longer.
        os.sync()
