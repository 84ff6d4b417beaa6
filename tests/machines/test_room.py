"""The room check: codes of laptops, and the list that they are collected in."""

import random
import re
from dataclasses import fields, replace

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError, BadParameterError
from perfkit.machine.record import Proof, Start
from perfkit.machines.room import Laptop, answers, laptop, read_code
from perfkit.panel.class_panel import who_cannot
from perfkit.passports.passport import save
from tests.doctor.looked import CARD, RIGHT
from tests.export.pages import problems
from tests.findings.made import MACHINE
from tests.hostile.texts import ATTACKS
from tests.machines.passports import passport

LAPTOP = Laptop(cores=8, memory_gb=16, disk_gb=120, python=12, tensorflow=21)
BARE = replace(LAPTOP, tensorflow=0)
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def laptops():
    """Laptops of every kind, from the smallest to those that no field holds."""
    draw = random.Random(7)
    yield LAPTOP
    for _ in range(200):
        values = {one.name: draw.randrange(1, 8) for one in fields(Laptop)}
        yield Laptop(**values | {one: draw.randrange(2) for one in ("starts", "busy")})


def test_a_code_is_read_back_as_it_was_written():
    for one in laptops():
        assert re.fullmatch(r"(\w{4}-){2}\w{4}", one.code)
        assert read_code(one.code) == one
        # Small letters and letters that look alike are understood.
        alike = one.code.lower().replace("0", "o").replace("1", "l")
        assert read_code(alike.replace("-", " ")) == one
    # More than a code can hold is the most that it can.
    large = replace(LAPTOP, cores=999, memory_gb=4000, disk_gb=100_000)
    most = replace(large, cores=127, memory_gb=255, disk_gb=511)
    assert read_code(large.code) == most


def test_codes_from_before_they_told_of_other_programs_are_read():
    old = read_code("211J-3JTM-16GV")
    assert (old.cores, old.tensorflow, old.starts, old.busy) == (2, 21, 1, 0)
    assert read_code(replace(old, busy=1).code) == replace(old, busy=1)
    assert old.code == "211J-3JTM-16GV"


def test_a_mistyped_letter_is_refused():
    wrong = 0
    for at, letter in enumerate(LAPTOP.code):
        for other in set(LETTERS) - {letter, "-"} if letter != "-" else ():
            typed = LAPTOP.code[:at] + other + LAPTOP.code[at + 1 :]
            with pytest.raises(BadParameterError, match="mistyped; ask for it again"):
                read_code(typed)
            wrong += 1
    assert wrong == 12 * 31


@pytest.mark.parametrize("text", ["", "Ada", "ABCD-EFGH", "ÄBCD-EFGH-JKMN", "0" * 99])
def test_what_is_no_code_is_refused(text):
    with pytest.raises(BadParameterError):
        read_code(text)


def test_a_laptop_is_told_as_it_is():
    machine = replace(MACHINE, gpus=(CARD,), start=Start(devices=("CPU:0",)))
    told = laptop(machine)
    assert (told.cores, told.memory_gb, told.python, told.tensorflow) == (2, 16, 11, 21)
    assert (told.gpus, told.unused_gpus, told.starts) == (0, 1, 1)
    assert told.disk_gb >= 0
    assert "2 cores, 16 GB of memory" in str(told)
    assert "1 GPU not used" in str(told)
    proof = Proof(device="GPU:0", computation="matrix product", **RIGHT)
    used = laptop(replace(machine, start=Start(proofs=(proof,))))
    assert (used.gpus, used.unused_gpus) == (1, 0)
    broken = laptop(replace(machine, start=Start(problem="It needs AVX.")))
    assert broken.starts == 0


@pytest.fixture
def room(tmp_path):
    """A class of which one cannot, one has not answered, and one mistyped."""
    mistyped = LAPTOP.code[:-1] + ("0" if LAPTOP.code[-1] != "0" else "1")
    lines = f"""Ada Bell {LAPTOP.code.lower()}
Bob,{BARE.code}
Eve-Marie de la-Tour
Kim\t{mistyped}

Zoe {BARE.code}
zoe {LAPTOP.code}
{LAPTOP.code}
ada bell"""
    (tmp_path / "codes.txt").write_text(lines, encoding="utf-8-sig")
    return tmp_path


def test_a_class_shows_who_cannot_and_who_has_not_answered(room, capsys):
    found = perfkit.classroom(room)
    told = repr(found)
    assert told.startswith("See to Bob first.")
    assert "3 of 6 machines can run every notebook." in told
    only = "can run only 01_gpu_verification: TensorFlow is not installed"
    assert f"Bob {only}." in told
    assert "Not answered: Eve-Marie de la-Tour." in told
    assert "Mistyped, ask again: Kim (line 4)." in told
    assert "In more than one line, the last counts: zoe." in told
    assert [name for name, _ in found.machines] == ["Ada Bell", "Bob", "zoe", "line 8"]
    assert "8 cores, 16 GB of memory, 120 GB of disk free" in found._repr_html_()
    page = found.export(room / "class.html").read_text(encoding="utf-8")
    assert problems(page) == []
    assert "has not answered" in page
    assert "Bob can run only 01_gpu_verification" in who_cannot(found)
    assert cli.main(["class", str(room)]) == 0
    assert "3 of 6 machines" in capsys.readouterr().out


def typed(code):
    """A code as people send it."""
    bare = code.replace("-", "")
    return (
        f"Ada Bell {code.replace('-', ' ')}",
        f"Ada Bell {bare.lower()}",
        f"Ada Bell {' '.join(bare)}",
        f"Ada Bell: {code.replace('-', chr(0x2013))}.",
        f'"Ada Bell";"{code}";',
        f"'Ada Bell {code}",
        f"Ada Bell\t{chr(0x201C)}{code}{chr(0x201D)}",
        f"  {code.lower()}\xa0 Ada Bell",
        f"{chr(0xFEFF)}Ada Bell\t{code}  ",
    )


@pytest.mark.parametrize("line", typed(LAPTOP.code), ids=ascii)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_code_is_read_however_it_was_typed(line, encoding, tmp_path):
    text = f"Eve\r\n{line}\r\n"
    (tmp_path / "codes.txt").write_bytes(text.encode(encoding))
    eve, ada = answers(tmp_path)
    assert (eve.name, eve.laptop, eve.problem) == ("Eve", None, "")
    assert (ada.name, ada.laptop, ada.line) == ("Ada Bell", LAPTOP, 2)


@pytest.mark.parametrize("line", typed(LAPTOP.code[:-1] + "7"), ids=ascii)
def test_a_code_that_cannot_be_read_is_named_with_its_line(line, tmp_path):
    (tmp_path / "codes.txt").write_text(f"\n{line} (Mac)\n", encoding="utf-8")
    (ada,) = answers(tmp_path)
    assert ada.laptop is None
    assert re.fullmatch(r"Ada Bell.*\(Mac\)", ada.name)
    mistyped = r"codes\.txt, line 2: .* is mistyped; ask for it again\."
    assert re.fullmatch(mistyped, ada.problem)


@pytest.mark.parametrize(
    "line", ["Eve-Marie de la-Tour", "Team 7", "Ana Lucia Borg", "PC 12, back row"]
)
def test_a_name_alone_has_not_answered(line, tmp_path):
    (tmp_path / "codes.txt").write_text(line)
    (answer,) = answers(tmp_path)
    assert (answer.name, answer.laptop, answer.problem) == (line, None, "")


def test_who_sent_a_passport_has_answered(room):
    save(passport("eve-marie de la-tour"), room / "eve.json")
    save(passport("Bob"), room / "bob.json")
    found = perfkit.classroom(room)
    told = repr(found)
    # The machines are compared first then; a passport knows more than a code.
    assert told.startswith("No machine is called slow: that takes 5 parts that 3")
    assert "Not in codes.txt" not in told
    assert "5 of 6 machines can run every notebook." in told
    assert "Not answered" not in told


def test_a_passport_belongs_to_the_name_that_the_list_knows(tmp_path):
    (tmp_path / "codes.txt").write_text("Ada\nBen\nCleo\n")
    for file, label in {"Ada": "Ada180", "mine": "ben", "x": "lab 7"}.items():
        save(passport(label), tmp_path / f"{file}.json")
    found = perfkit.classroom(tmp_path)
    assert [name for name, _ in found.machines] == ["Ada", "ben", "x"]
    told = repr(found)
    assert "3 of 4 machines can run every notebook." in told
    assert "Not answered: Cleo." in told
    assert "Not in codes.txt: x." in told


def test_who_has_no_cores_free_is_said_before_the_lesson(tmp_path):
    busy = replace(LAPTOP, busy=1)
    (tmp_path / "codes.txt").write_text(f"Ada {busy.code}\nBen {LAPTOP.code}\n")
    told = repr(perfkit.classroom(tmp_path))
    assert "2 of 2 machines can run every notebook." in told
    assert "Busy with other programs: Ada; end them before the lesson." in told
    assert str(busy).endswith(", busy")


def test_a_list_of_attackers_is_harmless_and_one_without_an_end_refused(tmp_path):
    attacks = (" ".join(attack[:999].split()) for attack in ATTACKS.values())
    lines = "\n".join(f"{attack} {BARE.code}" for attack in attacks)
    (tmp_path / "codes.txt").write_text(lines, errors="replace")
    found = perfkit.classroom(tmp_path)
    assert problems(found.export(tmp_path / "x.html").read_text()) == []
    assert "\x1b" not in repr(found)
    (tmp_path / "codes.txt").write_text("x\n" * 1_000_000)
    with pytest.raises(BadFileError, match="too long for a list"):
        perfkit.classroom(tmp_path)
