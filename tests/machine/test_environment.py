import pytest

from perfkit.machine import environment
from perfkit.machine.environment import anonymize, that_matter


def cleaned(value, *names):
    return that_matter({"XLA_FLAGS": value}, names)["XLA_FLAGS"]


KEPT = {
    "CUDA_VISIBLE_DEVICES": "0,1",
    "KERAS_BACKEND": "tensorflow",
    "NVIDIA_TF32_OVERRIDE": "0",
    "OMP_NUM_THREADS": "4",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
# What may hold secrets, or does not matter for speed.
LEFT_OUT = (
    *("HOME", "PATH", "SECRET_OMP_THING", "KERAS_BACKEND_TOKEN", "CUDA_SECRET"),
    *("TF_VAR_database_password", "TF_TOKEN_app_example_com", "TF_CLI_CONFIG_FILE"),
    *("TF_CONFIG", "MKL_API_KEY", "CUDA_API"),
)


def test_only_what_matters_for_speed_and_is_no_secret_is_kept():
    everything = dict.fromkeys(LEFT_OUT, "hunter2") | dict(reversed(KEPT.items()))
    assert list(that_matter(everything, []).items()) == list(KEPT.items())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("--xla_gpu_cuda_data_dir=/usr/local/cuda-12.4",
         "--xla_gpu_cuda_data_dir=<path>/cuda-12.4"),
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
        # What holds neither stays as it is.
        *[(value, value) for value in (
            "MIG-GPU-0,1:2", "12.4.127", "libtcmalloc.so.4", "4294967296",
            "background_thread:true,narenas:4", "granularity=fine,compact,1,0",
            "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit")],
    ],
)  # fmt: skip
def test_values_lose_their_paths_and_addresses(value, shown):
    assert cleaned(value) == shown


def test_names_are_hidden_wherever_they_stand():
    names = ("ada", "engine.example", "engine")
    shown = cleaned("cache-of-Ada-on-engine.example", *names)
    assert shown == "cache-of-<name>-on-<name>"
    # One of two letters is hidden as a whole word only.
    assert cleaned("compact,co@vm", "co", "vm", "") == "compact,<name>@<name>"
    # Long values and control characters are cut.
    assert len(cleaned("x" * 5000)) < 200
    assert cleaned("a\x1b[31mb\nc") == "a [31mb c"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("No such file: '/home/ada/my data/x.csv' (line 3)",
         "No such file: '<path>' (line 3)"),
        ("cannot read /home/ada/x because it is held",
         "cannot read <path> because it is held"),
        ("in /home/my data/x, ~/y and ../z", "in <path>, <path> and <path>"),
        ("patients/ada/7.png is broken", "<path> is broken"),
        (r"C:\Users\Ada\x.txt", "<path>"),
        ("it asked https://ada:pw@example.org/x and 10.2.3.4:88",
         "it asked <address> and <address>"),
        ("sk-abcdefgh12345678 is wrong", "<secret> is wrong"),
        ("Ada-Byron fed an adapter on engine.",
         "<name>-Byron fed an adapter on <name>."),
        *[(said, said) for said in (
            "train.csv has 3 rows", "877 images/s, 3/4 of it",
            "node gradient_tape/conv/Conv2DBackpropFilter",
            "on /job:localhost/replica:0/task:0/device:GPU:0 by", "")],
    ],
)  # fmt: skip
def test_a_sentence_keeps_its_reason_and_loses_who_and_where(said, kept, monkeypatch):
    monkeypatch.setattr(environment, "own_names", lambda: ("ada", "", "engine"))
    monkeypatch.setattr(environment, "named_in", lambda _: ("",))
    assert anonymize(said) == kept


@pytest.mark.parametrize("bit", ["a/", "/", "'/a ", "a.", "(/", "/a ", "-.", "1a"])
def test_a_long_sentence_of_anything_is_read_and_cut(bit):
    assert len(anonymize(bit * 2000)) <= 400
