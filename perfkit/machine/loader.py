"""The process that loads libraries as TensorFlow would, and tells which it could.

It is run as a script and imports nothing of ours, so that it starts in a moment:

    loader.py TENSORFLOW_FOLDER PACKAGES_FOLDER LIBRARY...

It prints a JSON line for each library: its name, the file it was loaded from or "", the
file that is there as a package or "", and the loader's words.
"""

import ctypes
import glob
import json
import os
import sys
from typing import Any

# The function that TensorFlow opens every such library with. The folders that are
# searched belong to the file that asks, so nobody can ask in its place.
_FILE = "libtensorflow_framework.so.2"
_FUNCTION = "_ZN3tsl8internal18LoadDynamicLibraryEPKcPPv"
# Of dlinfo: give the entry of the loader's list.
_LINK_MAP = 2


class _LinkMap(ctypes.Structure):
    _fields_ = (("address", ctypes.c_size_t), ("name", ctypes.c_char_p))


def main() -> None:
    """Try each library, in the order in which they are named."""
    if os.uname().machine != "x86_64":
        # Elsewhere an object is given back in another way than its function is called.
        return
    tensorflow, packages, *names = sys.argv[1:]
    load = getattr(ctypes.CDLL(os.path.join(tensorflow, _FILE)), _FUNCTION)
    load.restype = None
    found = {name: _loaded(load, name) for name in names}
    for name in names:
        # Only now, as whatever is loaded for this would be found by the next one.
        told = {"name": name, "file": found[name]}
        print(json.dumps(told | _in_words(name, packages, found[name])), flush=True)


def _loaded(load: Any, name: str) -> str:
    status, handle = ctypes.c_uint64(), ctypes.c_void_p()
    load(ctypes.byref(status), name.encode(), ctypes.byref(handle))
    return _file_of(handle) if handle.value else ""


def _file_of(handle: ctypes.c_void_p) -> str:
    entry = ctypes.POINTER(_LinkMap)()
    # Beside dlopen in libc, or before glibc 2.34 in libdl, which is loaded by now.
    dlinfo = ctypes.CDLL(None).dlinfo
    if dlinfo(handle, _LINK_MAP, ctypes.byref(entry)) != 0:
        return "?"
    return os.fsdecode(entry.contents.name) or "?"


def _in_words(name: str, packages: str, file: str) -> dict[str, str]:
    if file:
        return {"package": "", "words": ""}
    pattern = os.path.join(glob.escape(packages), "nvidia", "*", "lib", name)
    package = next(iter(sorted(glob.glob(pattern))), "")
    try:
        ctypes.CDLL(package or name)
    except OSError as error:
        return {"package": package, "words": str(error)}
    return {"package": package, "words": ""}


if __name__ == "__main__":
    main()
