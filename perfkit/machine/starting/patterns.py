"""What TensorFlow's start-up log means, line by line: a table.

A pattern is what a line contains. Those of TensorFlow 2.21 were looked up in its
library; the others are of versions from 2.10 on, as their users quote them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from perfkit.machine.record import Weight


class Pattern(NamedTuple):
    """One kind of line.

    Attributes:
        text: A regular expression that is found in the line.
        weight: Whether it keeps a GPU away, costs speed, or may be left alone.
        meaning: In a sentence or two, with what to do where there is something.
    """

    text: str
    weight: Weight
    meaning: str


# The first that is found counts: the narrow ones stand before the wide ones.
PATTERNS = (
    # No GPU at all.
    Pattern(
        r"Could not find cuda drivers",
        "fatal",
        "No NVIDIA driver was found: TensorFlow computes on the CPU. Without an NVIDIA "
        "GPU that is as it should be.",
    ),
    Pattern(
        r"Cannot dlopen (some GPU|all CUDA) libraries",
        "fatal",
        "A CUDA library could not be loaded, so no GPU is used: install them with "
        "`python -m pip install 'tensorflow[and-cuda]'`, and see that LD_LIBRARY_PATH "
        "names no other CUDA.",
    ),
    Pattern(
        r"Cannot dlopen all TensorRT|Could not find TensorRT"
        r"|Could not load dynamic library 'libnvinfer",
        "harmless",
        "TensorRT is an addition for serving models. Training does not use it.",
    ),
    Pattern(
        r"Could not load dynamic library",
        "fatal",
        "This library is missing or not found, so no GPU is used: install it with "
        "`python -m pip install 'tensorflow[and-cuda]'`.",
    ),
    Pattern(
        r"cuInit.*(UNKNOWN ERROR \((303|34)\)|CUDA_ERROR_S(HARED_OBJECT|TUB))",
        "fatal",
        "The driver's library libcuda is not there, so no GPU is used. Without an "
        "NVIDIA GPU that is as it should be; a container is given its GPUs with "
        "`--gpus all`.",
    ),
    Pattern(
        r"CUDA_ERROR_NO_DEVICE",
        "fatal",
        "The driver is there and shows this process no GPU: look at "
        "CUDA_VISIBLE_DEVICES, and in a container at how it was started.",
    ),
    Pattern(
        r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|does not match DSO version",
        "fatal",
        "The driver's library and its part in the kernel have different versions: "
        "restart the machine.",
    ),
    Pattern(
        r"CUDA_ERROR_(COMPAT_NOT_SUPPORTED|INSUFFICIENT_DRIVER)"
        r"|driver version is insufficient",
        "fatal",
        "The driver is older than this CUDA needs: update the driver.",
    ),
    Pattern(
        r"failed call to cuInit|Failed call to cuda(GetRuntimeVersion|DriverGetVersion)"
        r"|Error loading CUDA libraries",
        "fatal",
        "The driver could not be started, so no GPU is used. After sleep or an update, "
        "restarting the machine helps.",
    ),
    Pattern(
        r"kernel driver does not appear to be running",
        "fatal",
        "The driver's part in the kernel is not loaded: restart the machine, or "
        "install the driver anew.",
    ),
    Pattern(
        r"No (visible )?GPU devices",
        "fatal",
        "TensorFlow was left with no GPU.",
    ),
    Pattern(
        r"Skipping registering GPU devices",
        "fatal",
        "TensorFlow leaves every GPU alone; the line before says why.",
    ),
    # One card.
    Pattern(
        r"TF_MIN_GPU_MULTIPROCESSOR_COUNT",
        "fatal",
        "This GPU is left alone because it is small beside the others: set "
        "TF_MIN_GPU_MULTIPROCESSOR_COUNT to its own count to use it.",
    ),
    Pattern(
        r"minimum required Cuda capability|compute capability is not available",
        "fatal",
        "This GPU is older than this TensorFlow can use.",
    ),
    Pattern(
        r"executor is in invalid state",
        "fatal",
        "This GPU could not be started; another program may hold it alone.",
    ),
    Pattern(
        r"CUDA_ERROR_(INVALID_PTX|UNSUPPORTED_PTX_VERSION|INVALID_HANDLE"
        r"|NO_BINARY_FOR_GPU)|no kernel image is available|kernel image is invalid",
        "fatal",
        "This TensorFlow holds no kernels that this GPU can run: take a newer "
        "TensorFlow, or NVIDIA's container of it.",
    ),
    Pattern(
        r"was not built with CUDA kernel binaries",
        "matters",
        "This GPU is newer than this TensorFlow, whose kernels are compiled at the "
        "first start. That may take half an hour, once: keep the result with "
        "CUDA_CACHE_MAXSIZE=4294967296.",
    ),
    Pattern(
        r"CUDA_ERROR_DEVICE_UNAVAILABLE|all CUDA-capable devices are busy",
        "fatal",
        "Another program holds this GPU alone: end it, or set the compute mode with "
        "`nvidia-smi -c DEFAULT`.",
    ),
    Pattern(
        r"CUDA_ERROR_ECC_UNCORRECTABLE|CUDA_ERROR_(UNKNOWN|DEVICES_UNAVAILABLE)",
        "fatal",
        "The GPU or its driver has failed: restart the machine; if it comes back, look "
        "at the card.",
    ),
    # Libraries of other versions.
    Pattern(
        r"Loaded runtime CuDNN library.*was compiled with",
        "fatal",
        "An older cuDNN than TensorFlow needs is found first, so convolutions fail: "
        "remove it from LD_LIBRARY_PATH, or update nvidia-cudnn-cu12.",
    ),
    Pattern(
        r"Could not create cud(nn|a) handle|DNN library (is not found|initialization)"
        r"|failed to create cublas handle|CUDNN_STATUS_NOT_INITIALIZED",
        "fatal",
        "A library of the GPU does not start, most often because its memory is full or "
        "its version does not fit.",
    ),
    # Memory.
    Pattern(
        r"caller indicates that this is not a failure",
        "matters",
        "A faster algorithm found too little memory on the GPU. Said often, a smaller "
        "batch may be faster.",
    ),
    Pattern(
        r"ran out of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|failed to allocate",
        "matters",
        "The GPU's memory is taken, by this or by another program: see who holds it "
        "with `nvidia-smi`.",
    ),
    Pattern(
        r"Allocation of \d+ exceeds",
        "matters",
        "One piece of data takes a large part of the RAM.",
    ),
    Pattern(
        r"does not support oversubscription",
        "harmless",
        "GPUs as old as this cannot lend memory from the machine.",
    ),
    Pattern(
        r"Overriding (allow_growth|orig_value) setting",
        "harmless",
        "TensorFlow takes the GPU's memory as it needs it, as a variable asks.",
    ),
    # Compilers.
    Pattern(
        r"ptxas too old",
        "matters",
        "The first ptxas on PATH is old: XLA compiles with the driver instead, which "
        "is slower.",
    ),
    Pattern(
        r"(Couldn't|Can't|Could not) (get|find|invoke) ptxas|ptxas not found"
        r"|Failed to launch ptxas",
        "matters",
        "ptxas is missing: XLA may fail. It comes with "
        "`python -m pip install nvidia-cuda-nvcc-cu12`.",
    ),
    Pattern(
        r"Can't find libdevice directory",
        "matters",
        "libdevice is missing: XLA may fail. Install nvidia-cuda-nvcc-cu12 and point "
        "XLA_FLAGS=--xla_gpu_cuda_data_dir at its folder.",
    ),
    # What only looks bad.
    Pattern(
        r"oneDNN custom operations are on",
        "harmless",
        "The faster kernels for the CPU are in use. Results differ in the last digits.",
    ),
    Pattern(
        r"is optimized to use available CPU instructions|To enable the following instr",
        "harmless",
        "TensorFlow itself was built for older processors. oneDNN, where it is on, "
        "uses all that this one has.",
    ),
    Pattern(
        r"was compiled to use (\w+ )+instructions, but these aren't available",
        "fatal",
        "This processor lacks instructions that this TensorFlow needs: install a build "
        "for it.",
    ),
    Pattern(
        r"NUMA node.*negative value|could not open file to read NUMA node"
        r"|Your kernel may have been built without NUMA",
        "harmless",
        "The system does not say which cores are near the GPU. It costs nothing.",
    ),
    Pattern(
        r"Unable to register cu(DNN|BLAS|FFT) factory|has already been registered",
        "harmless",
        "A part of TensorFlow announces itself twice. The first counts.",
    ),
    Pattern(
        r"computation placer already registered",
        "harmless",
        "A part of TensorFlow announces itself twice. The first counts.",
    ),
    Pattern(
        r"All log messages before absl::InitializeLog",
        "harmless",
        "How the log is written.",
    ),
    Pattern(
        r"Filling up shuffle buffer|Shuffle buffer filled",
        "harmless",
        "A dataset's shuffle buffer is filled before the first step.",
    ),
    # What goes well.
    Pattern(
        r"Created device .*GPU|Found device \d+ with properties|pciBusID:|coreClock:"
        r"|Adding visible gpu devices|Device interconnect StreamExecutor",
        "harmless",
        "TensorFlow has taken this GPU into use.",
    ),
    Pattern(
        r"Successfully opened dynamic library|Loaded cuDNN version",
        "harmless",
        "A library of the GPU was found.",
    ),
    Pattern(
        r"TensorFloat-32 (will|is)",
        "harmless",
        "Products in float32 are computed faster with TF32, to three digits.",
    ),
    Pattern(
        r"XLA service \S+ initialized|StreamExecutor (cuda )?device \(\d+\)"
        r"|StreamExecutor \[|Compiled cluster using XLA",
        "harmless",
        "XLA, TensorFlow's compiler, is ready.",
    ),
    Pattern(
        r"(retrieving CUDA diagnostic|hostname:|libcuda reported|kernel reported"
        r"|driver version file contents|env: CUDA_VISIBLE_DEVICES|verbose logging is "
        r"disabled)",
        "harmless",
        "Details to the line before on why the driver did not start.",
    ),
    Pattern(
        r"MLIR V1 optimization pass|Plugin optimizer for device_type|MLIR crash reprod",
        "harmless",
        "An optional step of the compiler was left out.",
    ),
    Pattern(
        r"Local rendezvous is aborting|End of sequence",
        "harmless",
        "A dataset has come to its end.",
    ),
)
_COMPILED = tuple((re.compile(pattern.text), pattern) for pattern in PATTERNS)


def explained(message: str) -> Pattern | None:
    """Find what a message of the log means; None where nobody has explained it."""
    for expression, pattern in _COMPILED:
        if expression.search(message):
            return pattern
    return None
