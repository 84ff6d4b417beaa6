"""Files of TensorFlow's profiler, made by hand: times are in seconds."""

import pytest


class Plane:
    """A plane of a space, with names in place of numbers."""

    def __init__(self, space, name):
        self._plane = space.planes.add(name=name)
        self._events, self._stats = {}, {}

    def stat(self, name):
        """The number of a stat, or of a text that others refer to."""
        return self._number(name, self._stats, self._plane.stat_metadata)

    def event(self, name):
        return self._number(name, self._events, self._plane.event_metadata)

    def _number(self, name, known, metadata):
        if name not in known:
            number = known[name] = len(known) + 1
            metadata[number].id, metadata[number].name = number, name
        return known[name]

    def set(self, name, number):
        """A stat of the whole plane."""
        self._plane.stats.add(metadata_id=self.stat(name)).uint64_value = number

    def thread(self, name="python", at=0.0):
        line = self._plane.lines.add(name=name, timestamp_ns=round(at * 1e9))
        return Thread(self, line)

    def holds(self, name, data):
        """Bytes that belong to an event's name."""
        metadata = self._plane.event_metadata[self.event(name)]
        metadata.stats.add(metadata_id=self.stat("Hlo Proto")).bytes_value = data


class Thread:
    def __init__(self, plane, line):
        self._plane, self._line = plane, line

    def put(self, name, begin, end, /, **stats):
        """An event; texts of its stats are referred to, as TensorFlow does."""
        event = self._line.events.add(
            metadata_id=self._plane.event(name),
            offset_ps=round(begin * 1e12),
            duration_ps=round((end - begin) * 1e12),
        )
        for key, value in stats.items():
            one = event.stats.add(metadata_id=self._plane.stat(key))
            if isinstance(value, str):
                one.ref_value = self._plane.stat(value)
            else:
                one.int64_value = value
        return self


def fill(plane, events):
    """Put events into a plane: thread, name, begin and end, and a stage's name."""
    threads = {name: plane.thread(name) for name in {name for name, *_ in events}}
    for thread, name, begin, end, *stage in events:
        threads[thread].put(name, begin, end, **({"name": stage[0]} if stage else {}))


class Space:
    def __init__(self):
        proto = pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")
        self._space = proto.XSpace()

    def plane(self, name="/host:CPU"):
        return Plane(self._space, name)

    def write(self, folder):
        """The file in a folder, as the profiler writes it."""
        path = folder / "made.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._space.SerializeToString())
        return path
