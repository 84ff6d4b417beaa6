import pytest

from tests.machine import drivers


def test_without_a_compiler_there_is_a_sentence_instead_of_a_skip(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="install one, for example with"):
        drivers.build_library(tmp_path)


def test_every_scripted_machine_says_in_its_first_line_what_it_is():
    scripts = sorted(drivers.script("hopper").parent.glob("*.txt"))
    assert len(scripts) == 20
    for file in scripts:
        assert file.read_text().startswith("# ")


def test_every_line_of_a_scripted_machine_is_one_that_the_library_reads():
    calls = (drivers.HERE / "fake_nvml.c").read_text()
    for file in drivers.script("hopper").parent.glob("*.txt"):
        for line in file.read_text().splitlines()[1:]:
            name, gpu, answer = line.split(" ", 2)
            assert name == "lost" or name in calls
            assert gpu.replace(":", "").isdigit() or gpu == "*"
            assert answer
