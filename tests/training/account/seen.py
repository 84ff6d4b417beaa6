"""What ``collect`` leaves in a folder, made by hand."""

import json
import pickle

from perfkit.training.account.charge import charge
from perfkit.training.account.collect import RAW
from tests.training.account.spaces import Space

# When the first gradient was taken, on the clock of the samples.
TRAINED = 50.0


def trace(name, place, seconds, at=TRAINED + 1, *, trains=False):
    return {
        **{"name": name, "place": list(place), "at": at, "seconds": seconds},
        **{"trains": trains, "backward": []},
    }


class Seen:
    """A ``seen.json`` and its windows."""

    def __init__(self, folder):
        self._folder = folder
        self._keys, self._windows = [], []
        self.told = {
            **{"seconds": [], "background": [], "wall_s": 30.0, "looking_s": 1.0},
            **{"sampling_s": 0.1, "samples": 100, "untraced": ""},
            **{"trained_at": TRAINED, "made": [], "stages": [], "calls": []},
            **{"traces": [], "operations": {}, "frozen": [], "signatures": []},
            **{"definitions": {}},
            **{"settings": [], "padded": [], "memory": [], "models": []},
            **{"new_models": [], "iterators": [], "fills": [False, False]},
            **{"classes": {}, "epochs": [], "updates": 40, "ended": True, "error": ""},
        }

    def _key(self, place, call, kind, repeats):
        key = [list(place) if place else None, call, kind, repeats]
        if key not in self._keys:
            self._keys.append(key)
        return self._keys.index(key)

    def spent(self, place, kind, seconds, call="", *, repeats=True):
        """Seconds of samples outside of windows."""
        self.told["seconds"].append([self._key(place, call, kind, repeats), seconds])
        return self

    def window(self, started, samples, put, *, updates=10):
        """A window in which a sample was taken each 10 ms: place, call and kind.

        ``put`` puts events into a space's plane, whose clock begins at 0.
        """
        folder = f"window{len(self._windows)}"
        space = Space()
        put(space.plane())
        space.write(self._folder / folder)
        at = [started + 0.005 + 0.01 * number for number in range(len(samples))]
        keys = [self._key(*key, True) for key in samples]
        self._windows.append(
            {
                "folder": folder,
                "started": started,
                "ended": started + 0.01 * len(samples),
                "updates": [0, updates],
                "samples": [list(one) for one in zip(at, keys, strict=True)],
            }
        )
        return self

    def charge(self):
        """Write it, and give what is charged to whom, by place."""
        told = self.told | {"keys": self._keys, "windows": self._windows}
        (self._folder / RAW).write_text(json.dumps(told))
        # As it comes from its process.
        (note,) = charge(str(self._folder))
        return pickle.loads(pickle.dumps(note.value))


def rows(found):
    """Seconds by kind, of each line that has any."""
    every = found["lines"]
    return {(one.file, one.line): one.seconds for one in every if one.seconds}


def row(found, place):
    return next(one for one in found["lines"] if (one.file, one.line) == place)
