import functools
from dataclasses import replace

import pytest

from perfkit.machine.record import Load, Proof, Said, Software, Start
from perfkit.machines.examination import answer, log_of, parts
from tests.findings.made import finding
from tests.findings.test_report import taken_apart
from tests.findings.test_report import written as written_in_short
from tests.machine.checks.computers import proved
from tests.machines import looked

UNTRIED = replace(looked.FULL, start=None)
LACKING = replace(looked.WRONG, id="no-tensorflow")
MISMATCH = replace(looked.WRONG, id="driver-mismatch")
WRONG = Proof(device="GPU:0", computation="convolution", error=1.0, allowed=1e-3)


@pytest.mark.parametrize(
    ("machine", "checks", "said"),
    [
        (looked.FULL, (), "TensorFlow can use NVIDIA RTX 4090: it computed right"),
        (UNTRIED, (), "can use NVIDIA RTX 4090, as far as can be told without trying; "
         "`perfkit doctor --probe` lets it compute."),
        (UNTRIED, (looked.WRONG,), "cannot use NVIDIA RTX 4090 as things are"),
        (looked.BARE, (), "trains on the processor: no NVIDIA GPU is seen here."),
        (replace(looked.BARE, nvidia_cards=0), (), "there is no NVIDIA GPU here."),
        (looked.BARE, (MISMATCH,), "trains on the processor: no GPU answers here"),
        (looked.BARE, (LACKING,), "TensorFlow is not installed"),
        (replace(UNTRIED, gpus=(looked.CARD,) * 2), (), "use 2 x NVIDIA RTX 4090,"),
        (replace(UNTRIED, start=Start(devices=("CPU:0",))), (),
         "trains on the processor: it does not find NVIDIA RTX 4090."),
        (replace(UNTRIED, start=Start(devices=("GPU:0",), proofs=(WRONG,))), (),
         "was not seen to compute right"),
        (replace(UNTRIED, start=Start(problem="It hung.")), (), "its start here."),
    ],
)  # fmt: skip
def test_the_first_question_is_answered_from_what_was_seen(machine, checks, said):
    assert said in answer(machine, checks)


def test_every_part_that_is_known_has_its_line_and_others_have_none():
    assert dict(parts(looked.FULL)) == {
        "Processor": "AMD Ryzen 9 7900, 24 of 24 cores, governor powersave",
        "Memory": "60 GB of 64 GB, 50 GB free",
        "GPU": "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×16",
        "Driver": "NVIDIA 570.133.20, for CUDA up to 12.8",
        "TensorFlow": "2.21.0, with CUDA 12.5.82 and cuDNN 9.3.0.75, Keras 3.15.1",
        "Start-up": "imported in 4.2 s, GPU:0 computes right: convolution and matrix "
        "product",
        "System": "Linux 6.8, Python 3.12.3",
        "Load": "other programs keep 1.2 of 24 cores busy, on battery",
        "Disk": "ext4",
    }
    assert dict(parts(looked.BARE)) == {
        "Processor": "Intel Xeon Platinum 8481C, 2 of 8 cores",
        "Memory": "16 GB",
        "GPU": "No NVIDIA driver is installed.",
        "TensorFlow": "unknown",
        "System": "Linux 6.1, Python 3.11.7",
    }
    # Two gpus are numbered.
    two = replace(looked.FULL, gpus=(looked.CARD, looked.CARD))
    assert [name for name, _ in parts(two) if "GPU" in name] == ["GPU 0", "GPU 1"]


NARROW = replace(looked.CARD, link=replace(looked.CARD.link, width=8))
CPU = Software(platform="linux", build="cpu", packages=("tensorflow-cpu",))


def bare(**facts):
    return replace(looked.BARE, **facts)


def computed(**facts):
    """A start in which a convolution ended so."""
    proof = replace(proved("GPU:0")[0], **facts)
    return bare(start=Start(devices=("GPU:0",), proofs=(proof,)))


@pytest.mark.parametrize(
    ("machine", "part", "said"),
    [
        # A link that lacks lanes is told with what it could have.
        (replace(looked.FULL, gpus=(NARROW,)), "GPU",
         "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×8 of 4 ×16"),
        (bare(cores_quota=2.0, cores_affinity=8), "Processor",
         "Intel Xeon Platinum 8481C, 2 of 8 cores (quota)"),
        # A distribution of another name is named.
        (bare(versions={"tensorflow-cpu": "2.21.0"}, software=CPU), "TensorFlow",
         "2.21.0 (tensorflow-cpu), build for CPUs"),
        (bare(software=Software(platform="linux", build="none")), "TensorFlow",
         "not installed"),
        # A wheel for GPUs without their libraries is told from one with.
        (bare(software=looked.FULL.software, versions={"tensorflow": "2.21.0"}),
         "TensorFlow", "2.21.0, without packages of CUDA"),
        # Only what is proved is called right.
        *((computed(**wrong), "Start-up",
           "GPU:0 does not compute right: convolution")
          for wrong in ({"error": 0.5}, {"ran_on": "CPU:0"})),
        (computed(), "Start-up", "GPU:0 computes right: convolution"),
        # A quiet machine is told from one that does not tell.
        (bare(load=Load(others=0.0, on_battery=False)), "Load",
         "other programs keep 0 of 8 cores busy, on mains power"),
        (bare(load=Load()), "Load", "unknown"),
    ],
)  # fmt: skip
def test_a_part_is_said_as_it_is(machine, part, said):
    assert dict(parts(machine))[part] == said


written = functools.partial(written_in_short, in_full=True)


def test_the_answer_comes_first_then_the_parts_and_what_costs_most():
    found = looked.examination(looked.SLOW, looked.WRONG, looked.WELL, looked.HIDDEN)
    said = [
        "GPU:0 computes wrongly.",
        "TensorFlow can use NVIDIA RTX 4090: it computed right there.",
        "FAIL: GPU:0 computes wrongly",
        "  The matrix product on GPU:0 is off",
        "WARN: The cores save power",
        "  The governor is powersave.",
        "  Cores run at a lower frequency.",
        "  do: sudo cpupower frequency-set -g performance",
        "Processor",
        "Disk",
        "1 check is ok. Not known here: How the GPU is connected.",
        "What is ok",
        "All cores may be used",
        "What TensorFlow said as it started",
        "unexplained: ",
        "1 other line is harmless.",
    ]
    shown = taken_apart(found._repr_html_()).texts
    for text in (written(found), "".join(data for _, data in shown)):
        places = [text.index(part) for part in said]
        assert places == sorted(places)
    assert 'may be slower: "ptxas too old" XLA is slower.' in written(found)
    assert "All cores" not in repr(found)


def test_the_first_sentence_says_what_to_do():
    found = looked.examination(looked.SLOW)
    assert "WARN: The cores save power" in repr(found)
    assert "WARN: The cores save power" in found._repr_html_()
    said = repr(found).splitlines()[0]
    command = "sudo cpupower frequency-set -g performance"
    assert said == f"The cores save power: run `{command}`."
    assert "How much that costs was not measured." in repr(found)
    assert repr(looked.examination(LONG)).startswith("The cores save power.\n")
    # A machine with nothing wrong is told so.
    text = repr(looked.examination(looked.WELL, machine=looked.BARE))
    assert text.startswith("TensorFlow trains on the processor: no NVIDIA GPU is seen")
    assert text.splitlines()[1] == "Nothing was found here that costs speed."
    assert text.endswith("1 check is ok.")


LONG = replace(looked.SLOW, remedy="sudo " + "x" * 90)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_but_a_command_is_wider_than_the_terminal(width):
    long = replace(looked.WRONG, evidence="word " * 80, title="x" * 200)
    found = looked.examination(long, LONG)
    text = written(found, width, terminal=True)
    lines = [line.rstrip() for line in text.splitlines()]
    command = f"  do: {LONG.remedy}"
    assert max(len(line) for line in lines if line != command) <= width
    # It stays in one piece.
    assert f"{command}\n" in text
    assert f"{command}\n" in written(found, width)


def test_whatever_a_machine_says_is_shown_and_never_obeyed():
    hostile = "\x1b[31m<img src=x onerror='x'>\x07 [bold]b[/bold] :smile:\u202e"
    check = replace(
        looked.SLOW, title=hostile, evidence=hostile, why=hostile, remedy=hostile
    )
    start = Start(said=(Said(line=hostile, meaning="", weight="unexplained"),))
    machine = replace(looked.BARE, cpu=hostile, start=start, no_gpu=hostile)
    found = looked.examination(check, machine=machine, missed=(hostile,))
    for terminal in (True, False):
        text = written(found, terminal=terminal)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert " ".join(text.split()).count("[bold]b[/bold] :smile:") == 10
    assert taken_apart(found._repr_html_()).all("img") == []


def test_the_log_says_what_it_means_on_this_machine():
    said = Said(
        line="failed call to cuInit",
        meaning="No GPU is used. Without an NVIDIA GPU that is as it should be.",
        weight="fatal",
    )
    start = Start(said=(said,), devices=("CPU:0",))
    alone = replace(looked.BARE, start=start)
    lines = [log_of(m)[0] for m in (alone, replace(alone, nvidia_cards=1))]
    assert all(line.startswith('no GPU: "failed call to cuInit"') for line in lines)
    assert [line.count("as it should be") for line in lines] == [1, 0]
    both = replace(start, devices=("CPU:0", "GPU:0"))
    assert log_of(replace(looked.FULL, start=both))[0].startswith("noted: ")


def test_how_fast_each_part_is_has_its_table_and_what_was_missed_is_said_last():
    text = written(looked.examination(microbenchmarks=finding()))
    assert "prefetched is the fastest way here." in text
    assert "faster; the fastest here" in text
    found = looked.examination(missed=("No trial ran.",), stopped=True)
    assert repr(found).endswith(
        "No trial ran.\nIt was stopped before everything had been looked at."
    )


def test_in_a_notebook_the_text_is_given_back_and_not_shown(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(looked.examination()).startswith("TensorFlow can use")
