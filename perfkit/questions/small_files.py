"""What does it cost to read many small files: cold, warm, or packed into a few?

The suspect: each file is looked up and opened, and a disk that is asked for little at a
time waits more than it reads.
The test: read the same examples as files and as TFRecord shards, from the disk and from
memory, and compare examples per second. What is read cold has copies of its own, which
the system is asked to forget before each pass; what came from the disk is counted.
"""

import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.tick import READY, REFUSED, Note, Pause, Yielded, every
from perfkit.errors import BadFileError
from perfkit.findings.record import Verdict
from perfkit.machine import limits
from perfkit.machine.collect import drop_cached_file
from perfkit.questions.base import Experiment
from perfkit.questions.parameters import Range
from perfkit.questions.shared import benchmark, cache
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.race import Race, Ways, choices_of
from perfkit.questions.shared.words import brief

_SHARDS, _BATCH = 8, 64
_PLACES = {"cold": "from the disk", "warm": "from memory"}
# The note of the share that came from the disk, written every so many batches.
_FROM_DISK, _BATCHES_A_NOTE = "from the disk", 8
# With less of it a cold pass was none, and with more of it no warm pass was warm.
_COLD, _WARM = 0.5, 0.1


def _from_files(paths: list[str]) -> Any:
    files = tf.data.Dataset.from_tensor_slices(paths)
    return files.map(tf.io.read_file, num_parallel_calls=tf.data.AUTOTUNE)


def _from_shards(paths: list[str]) -> Any:
    return tf.data.TFRecordDataset(paths, num_parallel_reads=tf.data.AUTOTUNE)


_READERS: Ways = {
    "files": (_from_files, "Read a file for each example."),
    "shards": (_from_shards, "Pack the examples into TFRecord shards."),
}


@dataclass(frozen=True, kw_only=True)
class SmallFiles(Experiment):
    """What does it cost to read many small files: cold, warm, or packed into a few?"""

    count: Annotated[int, Range(100, 200_000, unit="files", help="Examples")] = 2_000
    size: Annotated[int, Range(1, 1000, unit="kB", help="Of each example")] = 8

    name = "small-files"
    baseline = "files, cold"
    choices: ClassVar = choices_of({f"{f}, cold": way for f, way in _READERS.items()})

    def make_variants(self) -> Mapping[str, Variant]:
        """Files and shards, each from the disk and from memory."""
        variants = [
            Variant(
                f"{form}, {state}",
                functools.partial(self._read, form, state),
                f"The examples as {form}, {place}.",
                f"files, {state}" if form == "shards" else self.baseline,
                code=code_of(_READERS[form][0]),
            )
            for state, place in _PLACES.items()
            for form in _READERS
        ]
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Write the files, once, and see whether the system can be asked to forget."""
        benchmark.without_gpus()
        for form, state in itertools.product(_READERS, _PLACES):
            write = functools.partial(_write, form, self.count, self.size)
            size, name = self.count * self.size * 1000, self._folder(form, state).name
            yield from cache.make(name, write, size=size, label=f"examples as {form}")
        if not hasattr(os, "posix_fadvise"):
            reason = "this system cannot be asked to forget what it has read"
            yield Note(REFUSED, dict.fromkeys(self.choices, reason))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say whether to pack, and whether what counts as cold came from the disk."""
        cold, warm = (_shares_from_disk(measured, state) for state in _PLACES)
        facts = ["How much came from the disk is not known here."]
        if cold:
            lowest = units.percent(min(cold))
            facts = [f"Of what was read cold at least {lowest} came from the disk."]
        if packed := measured.compare("shards, warm", "files, warm"):
            facts.append(f"From memory, shards against files: {brief(packed)}.")
        if max(warm, default=0.0) > _WARM:
            highest = units.percent(max(warm))
            facts[1:] = [f"Memory is not judged: {highest} of it came from the disk."]
        verdict = self.race(measured).verdict(because=tuple(facts))
        warning = "Cold was not cold: the system kept files it was asked to forget."
        is_warm = min(cold, default=1.0) < _COLD
        # Passes that were all warm would show no winner, so this is said then too.
        return replace(verdict, warnings=(warning,) if is_warm else ())

    def race(self, measured: Measurement) -> Race:
        """Whether to pack what is read from the disk."""
        return Race(measured, self.choices, "examples", "Reading")

    def _folder(self, form: str, state: str) -> Path:
        return cache.folder() / f"examples-{form}-{state}-{self.count}-{self.size}"

    def _read(self, form: str, state: str) -> Iterator[Yielded]:
        folder = self._folder(form, state)
        paths = sorted(str(path) for path in folder.glob("*.*"))
        if len(paths) != (_SHARDS if form == "shards" else self.count):
            raise BadFileError(f"Files are gone: remove {folder} and run again.")
        # Which byte it is does not matter; without one, nothing would be read.
        batches = _READERS[form][0](paths).map(tf.strings.length).batch(_BATCH)
        yield READY
        yield from every(self._passes(batches, paths if state == "cold" else []))

    def _passes(self, batches: Any, cold: list[str]) -> Iterator[int | Pause | Note]:
        while True:
            for path in cold:
                drop_cached_file(path)
            if cold:
                yield Pause("forgetting")
            before, read = _bytes_from_disk(), 0
            for number, lengths in enumerate(batches, start=1):
                read += len(lengths)
                yield len(lengths)
                is_due = number % _BATCHES_A_NOTE == 0 or read >= self.count
                after = _bytes_from_disk() if is_due else None
                if before is not None and after is not None:
                    share = (after - before) / (read * self.size * 1000)
                    yield Note(_FROM_DISK, min(1.0, share))


def _shares_from_disk(measured: Measurement, state: str) -> list[float]:
    trials = [trial for trial in measured.trials if trial.variant.endswith(state)]
    return [t.notes[_FROM_DISK] for t in trials if _FROM_DISK in t.notes]


def _bytes_from_disk() -> int | None:
    """Bytes that disks have given to this process; None where nobody counts."""
    return limits.amounts_of(Path("/proc/self/io")).get("read_bytes")


def _write(form: str, count: int, size: int, into: Path) -> Iterator[Note]:
    """Write the examples: noise, so that no file system can make them smaller."""
    for part in range(_SHARDS):
        yield Note("progress", f"Writing {form}, once: part {part + 1} of {_SHARDS}")
        examples = (os.urandom(size * 1000) for _ in range(part, count, _SHARDS))
        if form == "shards":
            with tf.io.TFRecordWriter(str(into / f"{part}.tfrecord")) as writer:
                for example in examples:
                    writer.write(example)
        else:
            for number, example in enumerate(examples):
                (into / f"{number:06d}-{part}.bin").write_bytes(example)
    # What is not on the disk yet is not forgotten; asked file by file, it takes longer.
    os.sync()
