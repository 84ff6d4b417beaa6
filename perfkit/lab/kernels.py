"""Which Python do notebooks run in? The one that runs the server, and no other."""

from jupyter_client.kernelspec import KernelSpecManager


class ThisPython(KernelSpecManager):
    """Offers one kernel, ``python3``, started with the server's own interpreter.

    Kernels that the user installed may bear the same name and lead to a Python without
    TensorFlow.
    """

    def _kernel_dirs_default(self) -> list[str]:
        # With no folder to look in, what is left is the native kernel.
        return []
