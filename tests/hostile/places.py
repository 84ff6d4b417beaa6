"""What lies in a folder where a document should be and is none, or cannot be read."""

import os
import stat

from perfkit.findings.reading import LARGEST_BYTES


def places(folder, sound):
    """Make each in a folder, as ``*.json``; give their paths by what they are."""
    made = {name: folder / f"{name}.json" for name in _MAKE}
    for name, make in _MAKE.items():
        make(made[name], sound)
    return {
        **made,
        "not there": folder / "nothing.json",
        "no folder": folder / "no folder" / "x.json",
        "below a file": folder / "sparse.json" / "x.json",
        "a device": "/dev/zero",
        "a full device": "/dev/full",
        "a terminal": "/dev/tty",
        "memory of this process": "/proc/self/mem",
        "a name that is too long": folder / f"{'x' * 300}.json",
        "a path that is too long": folder / "/".join(["x"] * 5000),
        "a name with a zero": f"{folder}/a\0b.json",
        "a name with escapes": folder / "a\x1b[2J\u202e\nb.json",
        "half a character": folder / os.fsdecode(b"a\xff.json"),
        "nobody's home": "~nobody-of-this-name/x.json",
        "no name": "",
        "the root": "/",
    }


_MAKE = {
    "a folder": lambda path, _: path.mkdir(),
    "pipe": lambda path, _: os.mkfifo(path),
    "socket": lambda path, _: os.mknod(path, stat.S_IFSOCK | 0o600),
    "sparse": lambda path, _: (path.touch(), os.truncate(path, 1000 * LARGEST_BYTES)),
    "loop": lambda path, _: path.symlink_to(path.name),
    "dangling": lambda path, _: path.symlink_to("nothing at all"),
    "unreadable": lambda path, sound: (path.write_bytes(sound), path.chmod(0)),
    "link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path, _: path.symlink_to("/"),
    "-rf": lambda path, _: path.write_bytes(b"{}"),
    "<script>alert(1)<\u2215script>": lambda path, _: path.write_bytes(b"{}"),
    "\x1b[2J\u202e": lambda path, _: path.write_bytes(b"{}"),
}
