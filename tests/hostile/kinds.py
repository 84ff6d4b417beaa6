"""Every kind of document that perfkit reads: how it is made, read and shown."""

from dataclasses import dataclass
from functools import cached_property

from perfkit.findings.account import Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.reading import parse
from perfkit.findings.record import Finding
from perfkit.findings.store import to_json
from perfkit.machines.record import Passport
from tests.findings import parts, spoiled
from tests.hostile import shown
from tests.machines.passports import passport
from tests.training.account.accounts import whole
from tests.training.diagnose.diagnosed import diagnosis
from tests.training.profile.profiled import profile


@dataclass(frozen=True)
class Kind:
    """How one kind is made and read; what is none it refuses."""

    record_type: type
    make: object

    @cached_property
    def sound(self):
        """The bytes of a sound one."""
        return to_json(self.make()).encode()

    def read(self, data, name):
        """Read bytes as a document of this kind."""
        return parse(data, name, self.record_type)

    def show(self, data):
        """Read bytes, show what they hold in every way and look at it."""
        shown.show(self.read(data, "x.json"))


KINDS = {
    "finding": Kind(Finding, lambda: parse(spoiled.sound(), "x.json", Finding)),
    "microbenchmarks": Kind(Finding, parts.finding),
    "diagnosis": Kind(Diagnosis, diagnosis),
    "passport": Kind(Passport, passport),
    "account": Kind(Account, whole),
    "profile": Kind(Profile, profile),
}
