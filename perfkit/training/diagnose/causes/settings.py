"""Settings that slow a training: those for debugging, and numbers of threads."""

import ast
import functools
from collections.abc import Iterator

from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose import settings
from perfkit.training.diagnose.change import Change, KnownCause, nothing, with_option
from perfkit.training.diagnose.code import Code, Splice, delete, only, require
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.source import called_name

# What is about the pipeline alone explains an input that is slow.
_OF_INPUT = ("tf.data.", "options.")
_POOL = "threading.private_threadpool_size"


def left_off(
    facts: Facts,
    cause: str,
    name: str,
    changes: str,
    subject: str = "The training then",
) -> Iterator[Change]:
    """Leave off all settings that slow the training and belong to one cause.

    Args:
        facts: What is known of the training.
        cause: As ``diagnose.settings`` has it.
        name: Of the change.
        changes: What it changes, ``{}`` standing for the lines.
        subject: As that of the change.
    """
    size = facts.pipeline.get("threads")
    # An option of the pipeline has the same effect; it is told as it is typed.
    options = [f"options.{_POOL} = {size}"] if size and cause == "threads" else []
    lines = [*facts.settings.get(cause, ()), *options]
    if not lines:
        return
    listed = " and ".join(f"`{line}`" for line in lines)
    yield Change(
        name=name,
        changes=changes.format(listed),
        fix=f"Delete {listed}.",
        subject=subject,
        # 0 stands for as many as there are cores.
        apply=with_option(_POOL, 0) if options else nothing,
        before=functools.partial(settings.leave_off, cause),
        after=WITHOUT_INPUT if all(o.startswith(_OF_INPUT) for o in lines) else "",
    )


def _delete_settings(code: Code, cause: str) -> Iterator[Splice]:
    """Delete the lines that set what slows it, as the first look has seen them."""
    lines = [*(code.facts.get("settings") or {}).get(cause, ())]
    if cause == "threads" and code.pipeline.get("threads"):
        lines.append("private_threadpool_size")
    for line in require(lines):
        assigned = [node for node, target in code.assignments if _sets(target, line)]
        calls = [call for call in code.calls if _sets(call, line)]
        yield from delete(code, only([*assigned, *calls]))


def _sets(node: ast.expr, line: str) -> bool:
    """Whether code sets what a line sets, its value being written in whatever way."""
    assigned = ast.unparse(node).replace("'", '"') + " = "
    name = line.partition("(")[0].split(".")[-1]
    return called_name(node) == name or line.startswith(assigned)


DEBUGGING = KnownCause(
    id="debugging",
    kind="defect",
    do="Turn debugging off",
    means="a debug setting is on",
    offer=functools.partial(
        left_off,
        cause="debugging",
        name="without debugging",
        changes="Debugging stays off: {}.",
        subject="Without it the training",
    ),
    edit=functools.partial(_delete_settings, cause="debugging"),
    masks=True,
    everywhere=True,
)
THREADS = KnownCause(
    id="threads",
    kind="defect",
    do="Let TensorFlow choose the number of threads",
    means="a setting gives it more or fewer threads than there are cores",
    offer=functools.partial(
        left_off,
        cause="threads",
        name="default threads",
        changes="TensorFlow uses one thread per core, without {}.",
    ),
    edit=functools.partial(_delete_settings, cause="threads"),
    everywhere=True,
)
