"""A commit's files, or a changed script, in a folder of their own; all is only read.

No branch, index or file of the user's is touched, and no hook runs: the commit is read
into an index that lies in the new folder, and written from there. What git does not
keep, such as data, is linked into it, so that both sides read the same; and so is all
that lies around a changed script.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perfkit.engine.alone import remove_left
from perfkit.errors import BadParameterError
from perfkit.training.diagnose.guard import original

_PREFIX = "perfkit-commit-"
_LOCK = "lock"
# The mode of a folder that another repository keeps.
_SUBMODULE = "160000 "
# A new index is a change of one, which some hooks and monitors are told of.
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
# What a run of ours leaves beside a script is no data.
_OURS = "perfkit-findings"


@dataclass(frozen=True)
class Commit:
    """The files of a commit, or what stands for one.

    Attributes:
        name: As it was asked for, with its number: ``"main (1a2b3c4)"``.
        top: The folder of the working tree.
        tree: The folder that holds the files.
        folder: What holds it and goes with it.
        lock: An open file; as long as it is open, no other process removes the folder.
    """

    name: str
    top: Path
    tree: Path
    folder: Path
    lock: int

    def move(self) -> None:
        """Let packages that are installed from the working tree be the commit's."""
        for number, place in enumerate(sys.path):
            if self._is_code(place):
                inside = Path(os.path.realpath(place)).relative_to(self.top)
                sys.path[number] = str(self.tree / inside)

    def find_leftovers(self, names: Iterable[str]) -> list[str]:
        """Return those of these modules that still came from the working tree."""
        modules = ((name, sys.modules.get(name)) for name in names)
        files = {name: getattr(module, "__file__", None) for name, module in modules}
        code = (n for n, f in files.items() if f and self._is_code(original(f)))
        return sorted({name.partition(".")[0] for name in code})

    def _is_code(self, place: str) -> bool:
        """Whether a file is the working tree's own code, and not an environment's."""
        where = Path(os.path.realpath(place))
        if not where.is_relative_to(self.top) or "site-packages" in where.parts:
            return False
        # A Python that the working tree lies in, such as /usr, is above these folders.
        environments = map(os.path.realpath, (sys.prefix, sys.base_prefix))
        between = set(itertools.takewhile(self.top.__ne__, (where, *where.parents)))
        return between.isdisjoint(map(Path, environments))

    def path_of(self, path: Path) -> Path:
        """Where a file or folder of the working tree lies in the commit."""
        try:
            target = self.tree / path.resolve().relative_to(self.top)
        except ValueError:
            raise BadParameterError(
                f"{path.name} is not in the repository {self.top.name}."
            ) from None
        if not target.exists():
            raise BadParameterError(f"{self.name} has no {path.name} in that folder.")
        return target

    def close(self) -> None:
        """Remove its files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)


def checked_out(revision: str, script: Path) -> Commit:
    """Write the files of a commit of the repository that holds a script.

    ``BadParameterError`` if there is no git, repository or commit.
    """
    top = Path(_git(script.resolve().parent, "rev-parse", "--show-toplevel")).resolve()
    # What begins with a dash would be an option.
    number = _git(
        top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"
    )
    with _new_folder(f"{revision} ({number[:7]})", top) as commit:
        index = {"GIT_INDEX_FILE": str(commit.folder / "index")}
        _git(top, "read-tree", number, **index)
        listed = _git(top, "ls-files", "--stage", "-z", **index).split("\0")
        if any(line.startswith(_SUBMODULE) for line in listed):
            raise BadParameterError(
                "That commit has submodules, which both sides would share: race the "
                "scripts of two clones."
            )
        _git(top, "checkout-index", "--all", f"--prefix={commit.tree}/", **index)
        _link_what_git_does_not_keep(top, commit.tree)
    return commit


def changed(script: Path, data: bytes, name: str) -> Commit:
    """Write a changed script where it finds around it what lies around the script.

    That is its repository, or else the folder that perfkit was started in, its own if
    it lies elsewhere.
    """
    script = script.resolve()
    tops = (p for p in script.parents if (p / ".git").exists())
    fallback = [Path.cwd()] if Path.cwd() in script.parents[:-1] else []
    with _new_folder(name, next(tops, *fallback or [script.parent])) as copy:
        target = copy.tree / script.relative_to(copy.top)
        target.parent.mkdir(parents=True)
        target.write_bytes(data)
        _link(copy.top, copy.tree)
    return copy


@contextlib.contextmanager
def _new_folder(name: str, top: Path) -> Iterator[Commit]:
    """Make a folder for files of a working tree; remove it where that fails."""
    remove_left(_PREFIX, _LOCK)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)
    commit = Commit(name, top, folder / top.name, folder, lock)
    try:
        yield commit
    except BaseException:
        commit.close()
        raise


def _link_what_git_does_not_keep(top: Path, tree: Path) -> None:
    listed = _git(top, "ls-files", "--others", "--directory", "-z")
    for name in filter(None, listed.split("\0")):
        source, target = top / name.rstrip("/"), tree / name.rstrip("/")
        between = itertools.takewhile(tree.__ne__, target.parents)
        # A link of the commit leads to files that are not ours, a file leads nowhere.
        if not any(path.is_symlink() or path.is_file() for path in between):
            _link(source, target)


def _link(source: Path, target: Path) -> None:
    """Link a file or folder into a commit; in a folder that it has, what it lacks."""
    if source.name in (_OURS, "__pycache__"):
        return
    if source.is_dir() and target.is_dir() and not target.is_symlink():
        for path in source.iterdir():
            _link(path, target / path.name)
    elif not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source, target_is_directory=source.is_dir())


def _git(folder: Path, *arguments: str, **variables: str) -> str:
    # Those that git sets for its hooks would name another repository or index.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        ran = subprocess.run(
            ["git", *_NO_HOOKS, "-C", str(folder), *arguments],
            env=environment | variables,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        refusal = "--commit needs git, which is not installed here."
        raise BadParameterError(refusal) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").splitlines() or [str(error)]
        reason = next((line for line in lines if line.startswith("fatal:")), lines[-1])
        raise BadParameterError(
            f"git refused ({reason}): give a commit of the script's repository, such "
            "as main or HEAD~1."
        ) from None
    return os.fsdecode(ran.stdout).strip("\n")
