"""What perfkit answers today: verdicts of recordings, options, refusals.

Whoever rebuilds perfkit runs ``python3 start.py test -- tests/net``: it compares with
``answers.json``. An answer that is meant to change is written anew by
``.venv/bin/python -m tests.net.answers``, and the diff of that file shows which did.
"""

import contextlib
import io
import json
import re
from pathlib import Path

import perfkit
from perfkit import cli, options
from perfkit.errors import PerfkitError
from perfkit.findings.record import Finding
from perfkit.findings.standing import measurement
from perfkit.questions import question_of
from perfkit.questions.replay import BROUGHT

FILE = Path(__file__).with_name("answers.json")
RECORDINGS = sorted(BROUGHT.glob("*.json"))
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Each must be refused in one sentence; {folder} is empty but for what is named here.
REFUSED = {
    "an unknown command": "dance",
    "an unknown question": "run vectoris",
    "a value out of range": "run vectorised --rows 0",
    "a budget in words": "run vectorised --budget soon",
    "a budget of nothing": "run vectorised --budget 0",
    "an option that there is not": "run vectorised --colour red",
    "a file that is not there": "show {folder}/nothing.json",
    "a file that is no finding": "show {folder}/other.json",
    "a file that is no JSON": "show {folder}/broken.json",
    "a page of nothing": "export {folder}/nothing.json",
    "a script that is not there": "diagnose {folder}/train.py",
    "a script's argument in front of --": "diagnose {folder}/empty.py --epochs 2",
    "lines of a script that is not there": "lines {folder}/train.py",
    "a race of one": "race {folder}/empty.py",
    "a race against nothing": "race {folder}/empty.py {folder}/train.py",
    "a patch and JSON on one stream": "diagnose {folder}/empty.py --diff --json -",
    "a profile of nothing": "profile {folder}/train.py:make_training",
    "a place that cannot be written": "run vectorised --json {folder}/no/such/x.json",
    "a class without a folder": "class {folder}/nowhere",
    "a machine that is not there": "compare {folder}/a.json {folder}/b.json",
    "a seed that is no whole number": "run vectorised --seed 1.5",
    "a passport without a file": "passport",
    "a passport in a text": "passport -o a.txt",
    "a passport whose budget is in words": "passport -o a.json --budget soon",
    "a fleet that is nowhere": "fleet passport",
    "a fleet without a question": "fleet a:1 run",
    "a fleet with an unknown question": "fleet tcp://127.0.0.1:1 run vectoris",
    "a fleet with a budget of nothing": "fleet a:1 run vectorised --budget 0",
    "a fleet whose folder has files": "fleet a:1 passport --out {folder}",
    "a lab without a folder": "lab {folder}/nowhere",
    "a doctor without a folder": "doctor --folder {folder}/nowhere",
}


def verdict_of(path):
    """The winner, how sure it is, and the interval; of a finding as worked out anew."""
    document = perfkit.load(path)
    verdict = getattr(document, "verdict", None)
    if isinstance(document, Finding) and document.experiment != "race":
        with contextlib.suppress(PerfkitError):
            verdict = question_of(document).verdict(measurement(document))
    if verdict is None:
        return {"kind": document.kind}
    return {
        "kind": document.kind,
        "winner": verdict.winner,
        "sure": verdict.sure,
        "interval": verdict.interval,
    }


def commands():
    """The name of each command."""
    return list(options._COMMANDS)


def options_of(command):
    """The options that the help of a command names, in order."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
        cli.main([*command.split(), "--help"])
    return sorted(set(OPTION.findall(written.getvalue())))


def refusal(line, folder):
    """The exit code, and the sentence on the standard error."""
    (folder / "other.json").write_text('{"kind": "holiday"}')
    (folder / "broken.json").write_text("{")
    (folder / "empty.py").write_text("")
    written = io.StringIO()
    with contextlib.redirect_stderr(written):
        code = cli.main(line.format(folder=folder).split())
    return {"code": code, "says": written.getvalue().replace(str(folder), "FOLDER")}


def all_answers(folder):
    """Everything that ``answers.json`` holds."""
    return {
        "recordings": {path.stem: verdict_of(path) for path in RECORDINGS},
        "options": {command: options_of(command) for command in commands()},
        "refusals": {case: refusal(line, folder) for case, line in REFUSED.items()},
    }


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as empty:
        answers = all_answers(Path(empty).resolve())
    FILE.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
