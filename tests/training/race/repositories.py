"""Repositories of git, and all of them that a race must leave as it is."""

import hashlib
import os
import subprocess
from pathlib import Path

SCRIPT = "import keras\nmodel = keras.Sequential()\nmodel.fit([1], [2])\n"
WHO = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    # What the one who runs the tests has set up is nothing to these repositories.
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}


def git(folder, *words):
    ran = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *words],
        env=os.environ | WHO,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit_all(top, name):
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "commit", "-qm", name)


def state(top):
    """All that a race must leave as it is: every file, and what git says of them."""
    every = {}
    for folder, _, files in os.walk(top):
        for name in files:
            path = Path(folder) / name
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            status = path.stat()
            every[str(path)] = digest, status.st_mtime_ns, status.st_ino
    said = [
        git(top, *words.split())
        for words in (
            "status --porcelain",
            "branch --all -v",
            "stash list",
            "worktree list",
            "reflog",
        )
    ]
    return every, said
