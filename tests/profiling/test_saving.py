"""A profile as a file: the same again, or a sentence."""

import json

import pytest

import perfkit
from perfkit.errors import BadFileError, PerfkitError
from perfkit.profiling import profile as profiling_profile
from tests.profiling.profiled import HELD, KERNEL, profile


def test_what_is_saved_is_read_again_as_it_was(tmp_path):
    made = profile(launched=(KERNEL,), held=(HELD,), missing={})
    path = profiling_profile.save(made, tmp_path / "new" / "steps.json")
    assert perfkit.profile(path) == made
    assert perfkit.profile(str(path)) == made


def changed(**changes):
    return json.dumps(
        json.loads(profiling_profile.to_json(profile())) | changes
    ).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (changed(kind="finding"), "not a profile but a finding"),
        (changed(schema=2), "written by a newer perfkit"),
        (changed(traced_s=["1"]), r"not a sound profile: .*traced_s\[0\]"),
        (changed(traced_s=[]), "it has no times"),
        (changed(untraced_s=[0.0]), "a time is not above 0"),
        (changed(traced_s=[1.0] * 1001), "more than 1000 entries in traced_s"),
        (changed(steps=[{"name": "a", "seconds": -1, "parts": {}}]), "below 0"),
        (b"", "is empty"),
        (profiling_profile.to_json(profile()).encode()[:200], "cut off"),
    ],
)
def test_what_is_no_sound_profile_is_refused_in_a_sentence(data, why):
    with pytest.raises(BadFileError, match=why):
        profiling_profile.parse(data, "steps.json")


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(BadFileError, match="There is no file"):
        perfkit.profile(tmp_path / "none.json")


def test_a_folder_that_cannot_be_written_costs_no_profile(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PerfkitError, match="The profile could not be saved"):
        profiling_profile.save(profile(), tmp_path / "file" / "steps.json")
