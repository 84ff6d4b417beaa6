import json

import pytest

from perfkit.errors import BadFileError
from perfkit.findings import reading
from perfkit.findings.reading import parse
from perfkit.findings.record import Finding
from perfkit.findings.store import to_json
from tests.findings.spoiled import document, put, sound


def read(made):
    return parse(json.dumps(made).encode(), "x", Finding)


def refused(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    with pytest.raises(BadFileError) as caught:
        parse(data, "other.json", Finding)
    sentence = str(caught.value)
    assert sentence.startswith("other.json ")
    assert "\n" not in sentence
    assert len(sentence) < 300
    return sentence


# In the middle of a number as well.
CUTS = [len(sound()) // 2, sound().index(b".") + 1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *((sound()[:end], "cut off") for end in CUTS),
        (b"", "is empty"),
        (b'{"kind": "\\ud800"}', "is not JSON"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
        (b"[]", "of perfkit's"),
        (b'{"kind": "passport", "schema": 1}', "a passport: perfkit show reads it"),
        (b'{"kind": "letter", "schema": 1}', "not a finding but a letter."),
        (b'{"kind": "finding"}', "its schema has no number"),
        (b'{"kind": "finding", "schema": 1}', "by a draft of perfkit (schema 1, this"),
        (b"[" + b"1," * 5_000_000 + b"1]", "too large"),
        (b'{"kind": 1e999}', "a number that is too large"),
        (b'{"kind": "' + b"x" * 200_000 + b'"}', "a text of 200,000 characters"),
    ],
)
def test_other_files_are_refused_in_one_sentence(data, words):
    assert words in refused(data)


def test_a_file_that_is_newer_or_larger_than_any_here_is_not_read(monkeypatch):
    sentence = refused(document(schema=3, trials="something new"))
    assert "newer perfkit (schema 3, this one reads 2)" in sentence
    assert "git pull" in sentence
    monkeypatch.setattr(reading, "LARGEST_BYTES", 100)
    assert "too large" in refused(sound())


DEEP: list = []
for _ in range(200):
    DEEP = [DEEP]
MANY = dict.fromkeys(map(str, range(501)), "none here")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("timings", 0, "rate"), "fast", "timings[0].rate"),
        (("timings", 0, "rate"), -1.0, "a rate is below 0"),
        (("comparisons", 0, "ratio"), 0.0, "a ratio is not above 0"),
        (("noise_floor",), -0.1, "the noise floor is not above 0"),
        (("machine", "cores"), 0, "its machine has no cores"),
        (("machine", "cores_granted"), 0.0, "its machine has no cores"),
        (("trials", 0, "ticks", 3), [1.0, 2, 3], "trials[0].ticks[3]"),
        (("trials", 0, "ticks", 3), [-1.0, 2], "a tick is below 0"),
        (("trials", 0, "parts", "input"), [-1.0], "a part of a tick is below 0"),
        (("samples",), {"cpu_trial": [1.0]}, "the samples do not fit together"),
        (("samples",), {"t": [0, 1], "x": [1]}, "the samples do not fit together"),
        (("samples",), {"t": [None]}, "a sample has no time"),
        (("unavailable",), MANY, "it has more than 500 variants"),
        (("notes", "deep"), DEEP, "lists that are nested too deeply"),
    ],
)
def test_what_no_run_can_have_measured_is_refused(path, value, words):
    made = document()
    put(made, path, value)
    assert words in refused(made)


def test_what_is_not_known_is_ignored_and_what_may_be_left_out_filled_in():
    made = document(mood="good")
    made["trials"][0]["colour"] = "blue"
    made["machine"]["location"] = {"room": 101}
    assert read(made) == parse(sound(), "x", Finding)
    for name in ("guess", "notes", "samples", "stopped", "seed", "baseline"):
        del made[name]
    assert read(made).guess == ""


def test_what_is_read_is_printable_and_of_limited_length():
    names = {"\x1b[2Jna\u202eive": "a\r\nb\x07", "long": "x" * 5000}
    made = document(unavailable=names, code={"naive": "if x:\n\ty\u200b()\n"})
    made |= {"guess": "\x00", "notes": {"deep": [{"\x9b": "line\u2028 end"}]}}
    found = read(made)
    long = "x" * 1999 + "…"
    assert found.unavailable == {"[2Jnaive": "a\nb", "long": long}
    assert found.code == {"naive": "if x:\n\ty()\n"}
    assert (found.guess, found.notes["deep"]) == ("", [{"": "line  end"}])
    assert read(json.loads(to_json(found))) == found
    code = read(document(code={"naive": "a\n" * 10_000})).code["naive"]
    assert code.splitlines() == [*["a"] * 399, "…"]
    # So is what is said of what is refused.
    made["trials"][0]["parts"]["\x1b[2J"] = ["x"]
    assert "\x1b" not in refused(made)
