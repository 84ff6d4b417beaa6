"""What the server is told; read by Jupyter, which provides ``get_config``."""

import os
from typing import TYPE_CHECKING

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.serverapp import ServerApp

if TYPE_CHECKING:
    from traitlets.config import get_config  # noqa: TC004  see above

c = get_config()

# Reachable from this machine only, by whoever holds the token.
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port_retries = 50
c.ServerApp.terminals_enabled = False
# Language servers: looking for them runs npm, which may ask the network for news.
c.ServerApp.jpserver_extensions = {"jupyter_lsp": False}
# Containers run as root; on loopback and with a token that takes nothing away.
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0
# Else any user of the machine may listen to what a notebook prints.
c.KernelManager.transport_encryption = "auto"


class ThisPython(KernelSpecManager):
    """Offers one kernel, ``python3``, started with the server's own interpreter.

    Kernels that the user installed may bear the same name and lead to a Python without
    TensorFlow.
    """

    def _kernel_dirs_default(self) -> list[str]:
        # With no folder to look in, what is left is the native kernel.
        return []


c.ServerApp.kernel_spec_manager_class = ThisPython


def _stop(self: ServerApp, from_signal: bool = False) -> None:
    self._stopping = True
    loop = self.io_loop
    (loop.add_callback_from_signal if from_signal else loop.add_callback)(self._stop)


# Its own takes the sockets down besides, at once: a server that is told to stop just
# when it opens them then fails at that, and never ends.
ServerApp.stop = _stop  # type: ignore[method-assign]

# Ctrl-C ends it, as it ends every command.
c.ServerApp.answer_yes = True
c.Application.log_level = "ERROR"

c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
