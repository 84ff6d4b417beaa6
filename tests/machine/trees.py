"""Computers that do not exist: what /proc and /sys say there, as a folder."""

XEON = """\
processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
cpu cores\t: 4

"""


def grow(root, files):
    """Write ``files``, a text by path, under ``root``."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def computer(cores=8, gigabytes=32, release="6.8.0-45-generic", **more):
    """The files of an ordinary Linux computer; ``more`` by path with "/" as "__"."""
    cpuinfo = "".join(XEON.format(number=number) for number in range(cores))
    return {
        "proc/cpuinfo": cpuinfo,
        "proc/meminfo": f"MemTotal:       {gigabytes * 10**6} kB\nMemFree: 1 kB\n",
        "proc/sys/kernel/osrelease": release + "\n",
        "proc/self/status": f"Name:\tpython\nCpus_allowed_list:\t0-{cores - 1}\n",
        "proc/self/cgroup": "0::/\n",
    } | more
