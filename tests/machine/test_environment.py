import pytest

from perfkit.machine import environment
from perfkit.machine.environment import nameless, that_matter


def cleaned(value, *names):
    return that_matter({"XLA_FLAGS": value}, names)["XLA_FLAGS"]


def test_only_what_matters_for_speed_is_kept():
    environment = {
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "OMP_NUM_THREADS": "4",
        "KERAS_BACKEND": "tensorflow",
        "NVIDIA_TF32_OVERRIDE": "0",
        "HOME": "/home/ada",
        "PATH": "/usr/bin",
        "SECRET_OMP_THING": "x",
        "KERAS_BACKEND_TOKEN": "x",
    }
    kept = that_matter(environment, [])
    assert list(kept) == [
        "CUDA_VISIBLE_DEVICES",
        "KERAS_BACKEND",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_NUM_THREADS",
        "TF_ENABLE_ONEDNN_OPTS",
    ]
    assert kept["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(
    "name",
    [
        "TF_VAR_database_password",
        "TF_TOKEN_app_example_com",
        "TF_CLI_CONFIG_FILE",
        "TF_CONFIG",
        "CUDA_SECRET",
        "MKL_API_KEY",
        "CUDA_API",
    ],
)
def test_variables_that_may_hold_secrets_are_left_out(name):
    assert that_matter({name: "hunter2"}, []) == {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            "--xla_gpu_cuda_data_dir=/usr/local/cuda-12.4",
            "--xla_gpu_cuda_data_dir=<path>/cuda-12.4",
        ),
        ("--xla_dump_to=/home/ada/dump --xla_x=2", "--xla_dump_to=<path> --xla_x=2"),
        ("/home/ada", "<path>"),
        ("~/cache", "<path>"),
        (r"C:\Users\Ada Byron\cuda", "<path>"),
        ("/home/ada byron/cuda --flag=1", "<path> --flag=1"),
        (r"\\server\share\ada", "<path>"),
        ("../work/ada", "<path>"),
        ("data/ada/cache", "data<path>"),
        ("/usr/lib/libtcmalloc.so:/home/ada/x.so", "<path>/libtcmalloc.so:<path>"),
        ("https://ada:pw@example.org/x y", "<address> y"),
        ("GPU-8f3c1d2e-aaaa-bbbb-cccc-0123456789ab", "GPU-8f3c..."),
        ("10.1.2.3:4567", "<address>"),
        ("gpu01.corp.example:2222,b", "<address>,b"),
        ("[fe80::1]:80", "<address>"),
        ("sk-abcdefgh12345678", "<secret>"),
        ("9f86d081884c7d659a2feaa0c55ad015", "<secret>"),
        ("MIG-GPU-0,1:2", "MIG-GPU-0,1:2"),
        ("12.4.127", "12.4.127"),
        ("libtcmalloc.so.4", "libtcmalloc.so.4"),
        ("4294967296", "4294967296"),
        ("background_thread:true,narenas:4", "background_thread:true,narenas:4"),
        ("granularity=fine,compact,1,0", "granularity=fine,compact,1,0"),
        (
            "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit",
            "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit",
        ),
    ],
)
def test_values_lose_their_paths_and_addresses(value, shown):
    assert cleaned(value) == shown


def test_names_are_hidden_wherever_they_stand():
    assert cleaned(
        "cache-of-Ada-on-engine.example", "ada", "engine.example", "engine"
    ) == ("cache-of-<name>-on-<name>")


def test_a_name_of_two_letters_is_hidden_as_a_whole_word_only():
    assert cleaned("compact,co@vm", "co", "vm", "") == "compact,<name>@<name>"


def test_long_values_and_control_characters_are_cut():
    assert len(cleaned("x" * 5000)) < 200
    assert cleaned("a\x1b[31mb\nc") == "a [31mb c"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "No such file: '/home/ada/my data/x.csv' (line 3)",
            "No such file: '<path>' (line 3)",
        ),
        (
            "cannot read /home/ada/x because it is held",
            "cannot read <path> because it is held",
        ),
        ("in /home/my data/x, ~/y and ../z", "in <path>, <path> and <path>"),
        ("patients/ada/7.png is broken", "<path> is broken"),
        (r"C:\Users\Ada\x.txt", "<path>"),
        (
            "it asked https://ada:pw@example.org/x and 10.2.3.4:88",
            "it asked <address> and <address>",
        ),
        ("sk-abcdefgh12345678 is wrong", "<secret> is wrong"),
        ("train.csv has 3 rows", "train.csv has 3 rows"),
        ("877 images/s, 3/4 of it", "877 images/s, 3/4 of it"),
        (
            "node gradient_tape/conv/Conv2DBackpropFilter",
            "node gradient_tape/conv/Conv2DBackpropFilter",
        ),
        (
            "on /job:localhost/replica:0/task:0/device:GPU:0 by",
            "on /job:localhost/replica:0/task:0/device:GPU:0 by",
        ),
        (
            "Ada-Byron fed an adapter on engine.",
            "<name>-Byron fed an adapter on <name>.",
        ),
        ("", ""),
    ],
)
def test_a_sentence_keeps_its_reason_and_loses_who_and_where(said, kept, monkeypatch):
    monkeypatch.setattr(environment, "own_names", lambda: ("ada", "", "engine"))
    monkeypatch.setattr(environment, "named_in", lambda _: ("",))
    assert nameless(said) == kept


@pytest.mark.parametrize("bit", ["a/", "/", "'/a ", "a.", "(/", "/a ", "-.", "1a"])
def test_a_long_sentence_of_anything_is_read_and_cut(bit):
    assert len(nameless(bit * 2000)) <= 400
