"""What does it cost to read many small files: cold, warm, or packed into a few?

The suspect: each file is looked up and opened, and a disk that is asked for little at a
time waits more than it reads.
The test: read the same examples as files and as TFRecord shards, both from the disk
and from the memory that the system keeps files in, and compare examples per second.
What is read cold has copies of its own, and the system is asked to forget them before
each pass; how much then came from the disk is counted, not taken for granted.
"""

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from perfkit import units
from perfkit.errors import BadFileError
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Range
from perfkit.experiments.shared import benchmark, cache
from perfkit.experiments.shared.code import code_of
from perfkit.experiments.shared.later import tf
from perfkit.experiments.shared.race import Choice, Race
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import READY, REFUSED, Note, Pause, Yielded, every

_SHARDS, _BATCH, _IN_A_FOLDER = 8, 64, 1000
# After so many batches it is told how much of them came from the disk.
_TOLD = 8
FILES, SHARDS, WARM_FILES, WARM_SHARDS = (
    *("files, cold", "shards, cold"),
    *("files, warm", "shards, warm"),
)
_VARIANTS = {
    FILES: ("One file for each example, read from the disk.", FILES),
    SHARDS: (f"The same examples packed into {_SHARDS} files, from the disk.", FILES),
    WARM_FILES: ("The files once more, as the system keeps them in memory.", FILES),
    WARM_SHARDS: ("The packed files once more, from memory.", WARM_FILES),
}
# The note of how much of what a cold pass read came from the disk, as a share.
_FROM_DISK = "from the disk"
# With less of it a cold pass was none, and with more of it no warm pass was warm.
_COLD, _WARM = 0.5, 0.1


def from_files(paths: list[str]) -> Any:
    """Read a file for each example."""
    files = tf.data.Dataset.from_tensor_slices(paths)
    return files.map(tf.io.read_file, num_parallel_calls=tf.data.AUTOTUNE)


def from_shards(paths: list[str]) -> Any:
    """Read the examples from a few files in turns."""
    return tf.data.TFRecordDataset(paths, num_parallel_reads=tf.data.AUTOTUNE)


_CHOICES = {
    FILES: Choice(
        "Read a file for each example.", functools.partial(code_of, from_files)
    ),
    SHARDS: Choice(
        "Pack the examples into TFRecord shards.",
        functools.partial(code_of, from_shards),
    ),
}


@dataclass(frozen=True, kw_only=True)
class SmallFiles(Experiment):
    """What does it cost to read many small files: cold, warm, or packed into a few?"""

    count: Annotated[
        int, Range(100, 200_000, unit="files", help="Examples, a file for each")
    ] = 2_000
    size: Annotated[int, Range(1, 1000, unit="kB", help="Of each example")] = 8

    name = "small-files"
    baseline = FILES
    choices = _CHOICES

    def make_variants(self) -> Mapping[str, Variant]:
        """Files and shards, each from the disk and from memory."""
        return {
            name: Variant(
                name,
                functools.partial(self._read, name),
                changes,
                against,
                code=code_of(from_shards if _packed(name) else from_files),
            )
            for name, (changes, against) in _VARIANTS.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Write the files, once, and see whether the system can be asked to forget."""
        benchmark.without_gpus()
        for name in _VARIANTS:
            yield from cache.make(
                self._folder(name).name,
                functools.partial(_write, self.count, self.size, packed=_packed(name)),
                size=self.count * self.size * 1000,
                what=f"{self.count:,} examples as {name.partition(',')[0]}",
            )
        if not hasattr(os, "posix_fadvise"):
            why = "this system cannot be asked to forget what it has read"
            yield Note(REFUSED, {FILES: why, SHARDS: why})

    def verdict(self, measured: Measurement) -> Verdict:
        """Say whether to pack, and whether what counts as cold came from the disk."""
        because = []
        warm = measured.compare(WARM_SHARDS, WARM_FILES)
        from_disk = max(_from_disk_in(measured, WARM_FILES, WARM_SHARDS), default=0.0)
        if from_disk > _WARM:
            because.append(
                f"What should come from memory came from the disk up to "
                f"{units.percent(from_disk)}: of memory nothing is said."
            )
        elif warm:
            because.append(
                f"From memory the shards run at {warm.interval} the rate of the files "
                f"({warm.judgement})."
            )
        shares = _from_disk_in(measured, FILES, SHARDS)
        warnings: tuple[str, ...] = ()
        if shares:
            least = min(shares)
            because.append(
                f"Of what was read cold at least {units.percent(least)} came from the "
                "disk."
            )
            if least < _COLD:
                warnings = (
                    "Not all that counts as cold was: the system kept files that it "
                    "was asked to forget.",
                )
        else:
            because.append("How much came from the disk is not known here.")
        verdict = self.race(measured).verdict(because=tuple(because))
        # Where all of it came from memory, no winner is what it would show.
        return replace(verdict, warnings=warnings)

    def race(self, measured: Measurement) -> Race:
        """Whether to pack what is read from the disk."""
        return Race(measured, _CHOICES, "examples", "Reading")

    def _folder(self, name: str) -> Path:
        what = name.replace(", ", "-")
        return cache.folder() / f"small-{what}-{self.count}-{self.size}"

    def _paths(self, name: str) -> list[str]:
        pattern = "*.tfrecord" if _packed(name) else "*/*.bin"
        paths = sorted(map(str, self._folder(name).glob(pattern)))
        if len(paths) != (_SHARDS if _packed(name) else self.count):
            raise BadFileError(
                f"Files in {cache.folder()} are gone; remove {self._folder(name).name} "
                "there and run again."
            )
        return paths

    def _read(self, name: str) -> Iterator[Yielded]:
        paths = self._paths(name)
        source = from_shards(paths) if _packed(name) else from_files(paths)
        # Which byte it is does not matter; without one, nothing would be read.
        batches = source.map(tf.strings.length).batch(_BATCH)
        yield READY
        yield from every(self._passes(batches, paths, cold=name.endswith("cold")))

    def _passes(
        self, batches: Any, paths: list[str], *, cold: bool
    ) -> Iterator[int | Pause | Note]:
        while True:
            if cold:
                _forget(paths)
                yield Pause("forgetting")
            before, read = _from_disk(), 0
            for number, lengths in enumerate(batches, start=1):
                read += int(lengths.shape[0])
                yield int(lengths.shape[0])
                told = number % _TOLD == 0 or read == self.count
                now = _from_disk() if told else None
                if before is not None and now is not None:
                    share = (now - before) / (read * self.size * 1000)
                    yield Note(_FROM_DISK, min(1.0, share))


def _from_disk_in(measured: Measurement, *names: str) -> list[float]:
    """The share that each trial of these variants had from the disk, where known."""
    trials = (trial for name in names for trial in measured.of(name))
    return [t.notes[_FROM_DISK] for t in trials if _FROM_DISK in t.notes]


def _forget(paths: list[str]) -> None:
    """Ask the system to drop what it keeps of files that are on the disk already."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def _packed(name: str) -> bool:
    return name.startswith("shards")


def _from_disk() -> int | None:
    """Bytes that disks have given to this process; None where nobody counts."""
    import psutil

    try:
        return int(psutil.Process().io_counters().read_bytes)
    except (AttributeError, psutil.Error, OSError):
        return None


def _write(count: int, size: int, into: Path, *, packed: bool) -> Iterator[Note]:
    """Write the examples: noise, so that no file system can make them smaller."""
    shards = [str(into / f"{number}.tfrecord") for number in range(_SHARDS)]
    writers = [tf.io.TFRecordWriter(name) for name in shards] if packed else []
    try:
        for number in range(count):
            example = os.urandom(size * 1000)
            if packed:
                writers[number % _SHARDS].write(example)
            else:
                folder = into / f"{number // _IN_A_FOLDER:03d}"
                folder.mkdir(exist_ok=True)
                (folder / f"{number:06d}.bin").write_bytes(example)
            if number % _IN_A_FOLDER == 0:
                yield Note("progress", f"Writing examples, once: {number} of {count}")
    finally:
        for writer in writers:
            writer.close()
    # What is not on the disk yet is not forgotten; asked file by file, it takes longer.
    os.sync()
