"""What to type, on this system: the same remedy is another command on each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.checks import asking

if TYPE_CHECKING:
    from perfkit.machine.record import Machine

_WITH_GPU = ("linux", "container", "wsl2")
_NVIDIA_PAGE = "https://www.nvidia.com/drivers"
_ANEW = "; then start Python, or Jupyter, anew from there."


def install(machine: Machine) -> str:
    """The command that installs TensorFlow as this machine can use it."""
    version = asking.tensorflow(machine)
    with_gpu = machine.gpus and asking.platform(machine) in _WITH_GPU
    name = "tensorflow[and-cuda]" if with_gpu else "tensorflow"
    return f'python -m pip install "{name}{f"=={version}" if version else ""}"'


def install_one(machine: Machine, packages: tuple[str, ...]) -> str:
    """The commands that put one TensorFlow, the right one, in the place of these."""
    return f"python -m pip uninstall -y {' '.join(packages)}; {install(machine)}"


def driver(machine: Machine) -> str:
    """How a driver gets to where there is none."""
    if asking.platform(machine) == "container":
        return (
            "Start the container with its GPUs: docker run --gpus all -e "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE; for that the host needs "
            "the driver and nvidia-container-toolkit"
        )
    return newer_driver(machine)


def newer_driver(machine: Machine) -> str:
    """How a current driver gets onto this system."""
    return {
        "wsl2": f"Install the current Windows driver from {_NVIDIA_PAGE}, in Windows "
        "and not inside WSL; then, in PowerShell: wsl --shutdown",
        "windows": f"Install the current driver from {_NVIDIA_PAGE}.",
        "container": "Update the driver of the host, not of the container; on Ubuntu: "
        "sudo ubuntu-drivers install; sudo reboot",
    }.get(
        asking.platform(machine),
        "Ubuntu: sudo ubuntu-drivers install; sudo reboot. Elsewhere: the driver's "
        f"package of the distribution, or {_NVIDIA_PAGE}.",
    )


def restart(machine: Machine) -> str:
    """How the system that holds the driver is started anew."""
    return {
        "wsl2": "In PowerShell: wsl --shutdown; if that does not help: restart Windows",
        "windows": "Restart Windows",
        "container": "On the host: sudo reboot; then start the container anew",
    }.get(asking.platform(machine), "sudo reboot")


def without(machine: Machine, variable: str) -> str:
    """How an environment variable goes away."""
    return {
        "windows": f"In PowerShell: Remove-Item Env:{variable}",
        "container": f"unset {variable}, or start the container without -e {variable}",
    }.get(asking.platform(machine), f"unset {variable}") + _ANEW


def with_value(machine: Machine, variable: str, value: str) -> str:
    """How an environment variable gets a value."""
    return {
        "windows": f'In PowerShell: $Env:{variable} = "{value}"',
        "container": f"export {variable}={value}, or start the container with "
        f"-e {variable}={value}",
    }.get(asking.platform(machine), f"export {variable}={value}") + _ANEW


def nvidia_smi(machine: Machine, options: str) -> str:
    """The command that changes a setting of a GPU, which takes an administrator."""
    return {
        "wsl2": f"In Windows, in a PowerShell as administrator: nvidia-smi {options}",
        "windows": f"In a PowerShell as administrator: nvidia-smi {options}",
        "container": f"On the host: sudo nvidia-smi {options}",
    }.get(asking.platform(machine), f"sudo nvidia-smi {options}")
