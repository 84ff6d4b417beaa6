"""How many processes or threads keep this machine's cores busy?"""

from __future__ import annotations

import os
from pathlib import Path

from perfkit.machine import limits


def granted() -> int:
    """Whole cores this process may use, at least 1; affinity and quota considered."""
    return max(1, round(limits.cores_granted(Path("/"), os.cpu_count() or 1)))
