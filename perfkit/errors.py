"""What can go wrong before or around a measurement.

PerfkitError
├── BadParameterError    a value outside what an experiment or command accepts
├── MissingPartError     something this machine lacks, with the command that adds it
├── BadFileError         a file that is not what it should be: unreadable, broken, newer
└── RunError             a run that could not give a finding at all

A trial that crashes, hangs or runs out of memory is none of these: it is an outcome,
recorded in the finding.
"""

import errno
import importlib.util
import os
import sys

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FILES = "close other programs, or allow more open files with `ulimit -n 4096`"
_PROCESSES = "close other programs, because the system has no room for another process"
_REMEDIES = {
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EAGAIN: _PROCESSES,
    errno.ENOMEM: _PROCESSES,
}


class PerfkitError(Exception):
    """The root: one sentence that says what happened and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the sentence says it all.

        A note holds what the reader's own code raised.
        """
        return [f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]


class BadParameterError(PerfkitError, ValueError):
    """A value outside what an experiment or command accepts."""


class MissingPartError(PerfkitError):
    """Something this machine lacks, with the command that adds it."""


class BadFileError(PerfkitError):
    """A file that is unreadable, broken, too large or from a newer perfkit."""


class RunError(PerfkitError):
    """A run that could not give a finding at all."""


def remedy(error: OSError, otherwise: str = "choose another folder") -> str:
    """What to do about what the system refused; ``otherwise`` where nobody knows."""
    if error.errno in _FULL:
        return " or ".join(filter(None, ("free some space", otherwise)))
    return _REMEDIES.get(error.errno or 0, otherwise)


def installing(package: str) -> str:
    """The command that installs a package into this environment.

    An environment that uv made has no pip, and pip of another would miss it.
    """
    if importlib.util.find_spec("pip") is not None:
        return f"python -m pip install {package}"
    python = f"{os.path.basename(sys.prefix)}/bin/python"
    return f"{python} -m ensurepip && {python} -m pip install {package}"


def need(module: str, subject: str, extra: str) -> None:
    """Refuse what takes a module that an extra of perfkit brings, where there is none.

    Args:
        module: By the name that it is imported by, whichever distribution brings it.
        subject: What takes it; the beginning of a sentence.
        extra: Of perfkit.

    Raises:
        MissingPartError: It is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingPartError(
            f"{subject} needs {module}, which is not installed in this environment: "
            f'run `pip install ".[{extra}]"` in the folder of perfkit.'
        )
