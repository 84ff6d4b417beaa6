"""The JSON Schemas of the files of findings and diagnoses, made from the types.

Run from a checkout when the types have changed: ``python benchmarks/schema.py``.
"""

import json
from pathlib import Path

import msgspec

from perfkit.findings import record
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding

PATHS = {
    of: Path(record.__file__).with_name(f"{of.__name__.lower()}.schema.json")
    for of in (Finding, Diagnosis)
}


def schema(of=Finding):
    """Make the schema; types only, the docstrings of the records say what they mean."""
    told = msgspec.json.schema(of)
    made = _pruned(told["$defs"].pop(of.__name__)) | {"$defs": _pruned(told["$defs"])}
    # They have one value each, but a file that leaves them out is not known by them.
    made["required"] = ["schema", "kind", *made["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A {of.__name__.lower()} of perfkit",
        **made,
    }


def text(of=Finding):
    """The schema as its file holds it."""
    return json.dumps(schema(of), indent=2, ensure_ascii=False) + "\n"


def _pruned(node):
    """Without titles that repeat names and descriptions that repeat docstrings."""
    if isinstance(node, list):
        return [_pruned(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _pruned(value)
        for key, value in node.items()
        if not (key in ("title", "description") and isinstance(value, str))
    }


if __name__ == "__main__":
    for record_type, path in PATHS.items():
        path.write_text(text(record_type), encoding="utf-8")
