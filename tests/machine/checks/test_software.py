import subprocess
import sys
from dataclasses import replace

import pytest

from perfkit.machine.checks import software
from perfkit.machine.checks.base import statements
from perfkit.machine.gpu import Driver
from perfkit.machine.record import Library
from tests.machine.checks import computers
from tests.machine.checks.computers import by_rule, card, changed, libraries, says

WITH, WITHOUT = computers.workstation(), computers.without_card()


def silent(cards=1, **facts):
    """A machine whose driver tells of no GPU."""
    return changed(WITHOUT, nvidia_cards=cards, **facts)


def built(machine=WITH, *, versions=(), **facts):
    """A machine with a TensorFlow of other facts, and other packages."""
    return changed(machine, software=facts, versions=dict(versions))


def on(platform, version):
    """A machine with this version of the driver."""
    return changed(WITH, driver={"version": version}, software={"platform": platform})


def of_python(version, python):
    machine = built(WITHOUT, build="cpu", versions={"tensorflow": version})
    return changed(machine, python=python)


def cudnn(version, name="nvidia-cudnn-cu12"):
    return built(versions={name: version})


def found(*libraries, **facts):
    return built(libraries=libraries, **facts)


def each(**facts):
    """Every library that is needed, those that are named here with other facts."""
    return [
        replace(library, **facts.get(library.name.split(".")[0], {}))
        for library in libraries()
    ]


def loading(*names):
    """A machine that has loaded these, each by name, version and origin."""
    fields = ("name", "version", "origin")
    told = (dict(zip(fields, one, strict=True)) for one in names)
    return changed(WITH, start={"loaded": tuple(Library(**one) for one in told)})


def with_variables(machine=WITH, **variables):
    return changed(machine, environment=variables)


def threads(variable, number, **facts):
    return changed(with_variables(**{variable: number}), **facts)


UNLOADED = Driver(problem="not loaded")
READER = "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
WSL = built(changed(WITHOUT, nvidia_cards=None), platform="wsl2")
WSL_WITH = changed(WSL, versions={"nvidia-cuda-runtime-cu12": "12.5.82"})
FOR_CPU = {"build": "cpu", "packages": ("tensorflow-cpu",), "cuda": None}
TWO = {"packages": ("tensorflow", "tensorflow-cpu")}
GONE = computers.with_card(WITH, refused={"card": "GPU is lost"})
LOST = libraries("not found", missing=("libcusolver.so.11", "libcudnn.so.9"))
NO_LIBCUDA = libraries("not found", missing=("libcuda.so.1",))
NCCL = replace(libraries()[0], name="libnccl.so.2", problem="not found")
WORDS = "cannot open shared object file"
SHADOWED = found(*each(libcudart={"origin": "search path"}))
OWN = ("libcudnn.so.9", "9.3.0", "package")
# The libraries of the driver may come from anywhere.
OF_DRIVER = loading(
    ("libcuda.so.1", None, "search path"),
    ("libnvidia-ptxjitcompiler.so.1", None, "search path"),
)
LATE = ("TF_GPU_ALLOCATOR", "TF_XLA_FLAGS")
BLOCKING = with_variables(CUDA_LAUNCH_BLOCKING="1")
CASES = {
    # No GPU is a fault only where one is left unused.
    software.no_card: [
        (WITHOUT, "no-gpu:ok",
         " | TensorFlow trains on the processor: there is no NVIDIA GPU here | ",
         " | No NVIDIA card is on the bus. | "),
        (WITH, ""),
        (changed(WITHOUT, driver=UNLOADED), "no-gpu:ok",
         "there is no NVIDIA GPU here, and nothing for its driver to load | ",
         "~restart"),
        (silent(None), "no-gpu:ok", ": no NVIDIA GPU is seen here | "),
        (built(WITHOUT, build="metal"), "no-gpu:ok", "built for GPUs of Apple",
         "~processor"),
        (built(WITHOUT, build="rocm"), "no-gpu:ok", "built for GPUs of AMD",
         "~processor"),
        (WSL, "no-driver:unknown"),
        (WSL_WITH, ""),
        (silent(None, driver=UNLOADED), ""),
    ],
    software.silent: [
        *[(machine, "") for machine in (
            WITHOUT, WITH, WSL, changed(WITHOUT, driver=UNLOADED), silent(None),
            *(built(WITHOUT, build=build) for build in ("metal", "rocm")))],
        (WSL_WITH, "no-driver:fail"),
        (silent(None, driver=UNLOADED), "driver-not-loaded:fail"),
        # Each silence of the driver has its name and remedy.
        (silent(driver=Driver(problem="no answer")), "driver-silent:fail",
         "nvidia-smi"),
        (silent(driver=Driver(problem="no driver")), "no-driver:fail",
         "ubuntu-drivers"),
        (silent(2), "no-driver:fail", "NVIDIA cards on the bus: 2."),
        (silent(no_gpu=READER), "no-reader:fail",
         " | python -m pip install nvidia-ml-py | "),
    ],
    # A driver is held against the minimum of CUDA 12.
    software.too_old: [
        *[(on(platform, version), said, version) for platform, version, said in (
            ("linux", "525.60.13", "driver:ok"),
            ("linux", "525.60.11", "driver-too-old:fail"),
            ("linux", "470.256.02", "driver-too-old:fail"),
            ("wsl2", "528.33", "driver:ok"),
            ("wsl2", "527.41", "driver-too-old:fail"))],
        # Of a version of CUDA that is not in the table nothing is said.
        *[(built(cuda=cuda), "") for cuda in ("14.0", None)],
    ],
    # The TensorFlow is the one that this machine wants.
    software.missing: [
        (built(WITHOUT, build="none"), "no-tensorflow:fail"),
        (WITHOUT, ""),
    ],
    software.cpu_only: [
        (built(**FOR_CPU), "cpu-only-build:fail",
         " | python -m pip uninstall -y tensorflow-cpu; "
         'python -m pip install "tensorflow[and-cuda]==2.21.0" | '),
        (built(WITHOUT, **FOR_CPU), ""),
    ],
    software.duplicated: [
        (built(**TWO), "two-tensorflows:fail"),
        (built(WITHOUT, **TWO), "two-tensorflows:warn", 'install "tensorflow==2.21.0"'),
    ],
    # Untested is not wrong.
    software.tested: [
        (built(cuda="12.9.1"), "tested-build:unknown",
         "CUDA 12.5 (this build: 12.9.1)"),
        *[(of_python(version, python), f"tested-build:{status}")
          for version, python, status in (
              ("2.21.0", "3.13.1", "ok"), ("2.21.0", "3.14.0", "unknown"),
              ("2.16.2", "3.9.9", "ok"), ("2.16.2", "3.13.0", "unknown"),
              ("2.30.0", "3.13.0", "unknown"), ("2.9.0", "3.9.0", "unknown"))],
    ],
    software.backend: [
        (built(keras_backend="jax"), "keras-backend:warn", " | Keras trains with jax"),
        (WITH, ""),
    ],
    software.elsewhere: [
        (built(elsewhere="It is not the one."), "other-environment:warn",
         " | It is not the one. | "),
        (WITH, ""),
    ],
    software.wsl1: [
        (built(WITHOUT, platform="wsl1"), "wsl-1:warn", "wsl --set-version"),
    ],
    # A card that fell off the bus is named with the word of the driver.
    software.lost: [
        (GONE, "lost-card:fail", " | NVIDIA RTX A4000: GPU is lost. | "),
        (WITH, ""),
    ],
    # A cuDNN fits if it is as new and of the same generation, and for this CUDA.
    software.old_cudnn: [
        *[(cudnn(version), "") for version in ("9.3.0.75", "9.26.0.1")],
        *[(cudnn(version), "wrong-cudnn:fail")
          for version in ("9.1.0.70", "8.9.7.29", "10.0")],
        (cudnn("8.9.7.29", "nvidia-cudnn-cu11"), ""),
    ],
    # Each library that cannot be loaded is named.
    software.absent: [
        (found(*LOST), "missing-library:fail",
         "Of 7 libraries 2 cannot be loaded: libcusolver.so.11, libcudnn.so.9",
         "tensorflow[and-cuda]"),
        # Those that are installed need only be named.
        (found(*each(libcufft={"problem": "not found"})), "missing-library:fail",
         " | export LD_LIBRARY_PATH=$(python -c", ":$LD_LIBRARY_PATH; then start"),
        # What the loader says of several is told once.
        (found(*(replace(x, problem=f"{x.name}: {WORDS}") for x in libraries())),
         "missing-library:fail", f", libcudnn.so.9 ({WORDS}). | "),
        (found(*NO_LIBCUDA), "libraries:ok"),
        (WITHOUT, ""),
        # What several GPUs alone need is not missed.
        (found(*libraries(), NCCL), "libraries:ok"),
    ],
    # That of the driver does not come from pip.
    software.no_driver: [
        (found(*NO_LIBCUDA, container=True), "no-libcuda:fail",
         "docker run --gpus all"),
        (found(*NO_LIBCUDA, container=False), "no-libcuda:fail", "ubuntu-drivers"),
        (WITH, ""),
    ],
    # One copy of each library is loaded, and the right one.
    software.shadowed: [
        (SHADOWED, "shadowed-libraries:warn",
         f"LD_LIBRARY_PATH leads to {computers.NEEDED[1]},", "out of LD_LIBRARY_PATH",
         "keep those of the driver", "~unset"),
        (replace(SHADOWED, versions={"tensorflow": "2.21.0"}), ""),
        (WITH, ""),
        (OF_DRIVER, ""),
    ],
    software.twice: [
        (loading(OWN, ("libcudnn.so.8", "8.9.7", "search path")), "loaded-twice:warn",
         " | libcudnn: 8.9.7 (search path), 9.3.0 (package). | ", "LD_LIBRARY_PATH"),
        (loading(OWN, ("libcudnn.so.8", "8.9.7", "system")),
         "loaded-twice-elsewhere:warn", "| grep libcudnn", "~LD_LIBRARY_PATH"),
        (loading(OWN), ""),
        (OF_DRIVER, ""),
    ],
    software.costly: [
        # A variable costs with one value and not with another.
        *[case for variable, costs, does_not, rule in (
              ("CUDA_LAUNCH_BLOCKING", "1", "0", "launch-blocking"),
              ("CUDA_CACHE_DISABLE", "1", "0", "no-kernel-cache"),
              ("TF_DETERMINISTIC_OPS", "true", "false", "deterministic"),
              ("TF_CUDNN_DETERMINISTIC", "1", "0", "deterministic-cudnn"),
              ("TF_CUDNN_USE_AUTOTUNE", "0", "1", "no-autotune"),
              ("TF_FORCE_UNIFIED_MEMORY", "1", "0", "unified-memory"),
              ("NVIDIA_TF32_OVERRIDE", "0", "1", "no-tf32"),
              ("TF_ENABLE_ONEDNN_OPTS", "0", "1", "onednn-off"),
              ("XLA_FLAGS", "--xla_dump_to=<path>", "--xla_gpu_cuda_data_dir=/",
               "xla-dump"),
              ("TF_CPP_MIN_LOG_LEVEL", "2", "1", "silenced-log"))
          for case in ((with_variables(**{variable: costs}), f"{rule}:warn"),
                       (with_variables(**{variable: does_not}), ""))],
        # TensorFlow itself leaves oneDNN off on an older processor.
        *[(changed(with_variables(machine, TF_ENABLE_ONEDNN_OPTS="0"),
                   processor=processor), said)
          for machine in (WITH, WITHOUT)
          for processor, said in ((None, "onednn-off:warn"),
                                  ({"instructions": ("avx2", "fma")}, ""))],
        (with_variables(CUDA_FORCE_PTX_JIT="1"), "forced-compiling:fail"),
        *[(with_variables(XLA_FLAGS=f"--xla_disable_{some}hlo_passes"),
           "xla-passes-off:warn") for some in ("", "all_")],
        # Clustering by XLA is neither good nor bad.
        (with_variables(TF_XLA_FLAGS="--tf_xla_auto_jit=2"), "auto-clustering:unknown"),
        # What concerns a GPU is no matter without one; older cards have no TF32.
        (with_variables(WITHOUT, CUDA_LAUNCH_BLOCKING="1", NVIDIA_TF32_OVERRIDE="0",
                        TF_CPP_MIN_LOG_LEVEL="3"), ""),
        (with_variables(computers.workstation(card(compute_capability="7.5")),
                        NVIDIA_TF32_OVERRIDE="0"), ""),
        # The remedy unsets the variable in the words of the system.
        *[(changed(BLOCKING, software=facts), "launch-blocking:warn", remedy)
          for facts, remedy in (
              ({}, " | unset CUDA_LAUNCH"),
              ({"container": True}, "without -e CUDA_LAUNCH"))],
    ],
    # Threads are held against the cores.
    software.threads: [
        *[(threads(variable, number), "few-threads:warn", f" | {variable} allows")
          for variable, number in (
              ("TF_NUM_INTRAOP_THREADS", "4"), ("TF_NUM_INTEROP_THREADS", "1"),
              ("OMP_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "12"))],
        # 0 leaves the choice to TensorFlow.
        *[(threads(variable, number), "") for variable, number in (
              ("TF_NUM_INTRAOP_THREADS", "24"), ("TF_NUM_INTRAOP_THREADS", "0"),
              ("TF_NUM_INTEROP_THREADS", "2"), ("OMP_NUM_THREADS", "four"))],
        # As many as cores are granted are enough, and one for each core.
        (threads("TF_NUM_INTRAOP_THREADS", "2", cores_granted=2.0), ""),
        (threads("OMP_NUM_THREADS", "12", processor={"physical_cores": 12}), ""),
    ],
    # Variables that were set too late are named.
    software.late: [
        (built(set_late=LATE), "set-too-late:warn",
         " | Set too late: TF_GPU_ALLOCATOR, TF_XLA_FLAGS. | "),
        (WITH, ""),
    ],
}  # fmt: skip

test_software_is_judged_by_what_is_known_of_it = by_rule(CASES)


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("problem", ["mismatch", "no permission", "no answer", ""])
def test_a_driver_that_is_there_is_believed_whatever_the_bus_says(problem, cards):
    says(software.silent, silent(cards), "")
    broken = silent(cards, driver=Driver(problem=problem))
    assert [check.status for check in software.silent(broken)] == ["fail"]
    says(software.no_card, broken, "")


def test_onednn_costs_most_where_the_processor_trains():
    machines = (with_variables(m, TF_ENABLE_ONEDNN_OPTS="0") for m in (WITHOUT, WITH))
    alone, beside = (next(software.costly(machine)).cost for machine in machines)
    assert alone > beside


def test_the_folders_of_installed_libraries_are_printed(tmp_path):
    folder = tmp_path / "nvidia/cufft/lib"
    folder.mkdir(parents=True)
    code = statements()["unnamed-libraries"]["value"]
    code = code.removeprefix('$(python -c "').removesuffix('")')
    path = "__import__('sysconfig').get_path('purelib')"
    code = code.replace(path, repr(str(tmp_path)))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == str(folder)
