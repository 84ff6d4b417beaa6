"""Every kind of document that perfkit reads: how it is made, read and shown."""

from dataclasses import dataclass
from functools import cached_property

from perfkit.findings import account_files as files
from perfkit.findings import reading
from perfkit.findings.store import to_json
from perfkit.machines import record
from perfkit.training.profile import profile as profiling
from tests.findings import parts, spoiled
from tests.hostile import shown
from tests.machines.passports import passport
from tests.training.account.accounts import whole
from tests.training.diagnose.diagnosed import diagnosis
from tests.training.profile.profiled import HELD, KERNEL, profile


@dataclass(frozen=True)
class Kind:
    """How one kind is made, written and read; what is none it refuses."""

    make: object
    to_json: object
    read: object

    @cached_property
    def _sound(self):
        return self.to_json(self.make()).encode()

    def sound(self):
        """The bytes of a sound one."""
        return self._sound

    def show(self, data):
        """Read bytes, show what they hold in every way and look at it."""
        shown.show(self.read(data, "x.json"), len(data))


def _finding():
    return reading.parse(spoiled.sound(), "x.json")


def _profile():
    return profile(launched=(KERNEL,), held=(HELD,))


KINDS = {
    "finding": Kind(_finding, to_json, reading.parse),
    "microbenchmarks": Kind(parts.finding, to_json, reading.parse),
    "diagnosis": Kind(diagnosis, to_json, reading.parse_diagnosis),
    "passport": Kind(passport, record.to_json, record.parse),
    "account": Kind(whole, files.to_json, files.parse),
    "profile": Kind(_profile, profiling.to_json, profiling.parse),
}
