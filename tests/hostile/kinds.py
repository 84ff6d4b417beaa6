"""Every kind of document that perfkit reads: a sound one, its reader, its displays."""

from dataclasses import dataclass
from functools import cache

from perfkit.account import files
from perfkit.findings import reading
from perfkit.findings.store import to_json
from perfkit.machines import record as machines_passport
from perfkit.profiling import profile as profiling_profile
from tests.account.accounts import whole
from tests.diagnosis.diagnosed import diagnosis
from tests.findings import parts, spoiled
from tests.hostile import shown
from tests.machines.passports import passport
from tests.profiling.profiled import HELD, KERNEL, profile


@dataclass(frozen=True)
class Kind:
    """How one kind is made, read and shown.

    Attributes:
        sound: Gives the bytes of a sound one.
        read: Takes bytes and a name; refuses what is none.
        show: Takes the bytes, reads them, shows what they hold and looks at it.
    """

    sound: object
    read: object
    show: object


def _sound(make, to_json):
    return cache(lambda: to_json(make()).encode())


def _profile():
    return profile(launched=(KERNEL,), held=(HELD,))


KINDS = {
    "finding": Kind(spoiled.sound, reading.parse, shown.finding),
    "microbenchmarks": Kind(
        _sound(parts.finding, to_json), reading.parse, shown.finding
    ),
    "diagnosis": Kind(
        _sound(diagnosis, to_json), reading.parse_diagnosis, shown.diagnosis
    ),
    "passport": Kind(
        _sound(passport, machines_passport.to_json),
        machines_passport.parse,
        shown.passport,
    ),
    "account": Kind(_sound(whole, files.to_json), files.parse, shown.account),
    "profile": Kind(
        _sound(_profile, profiling_profile.to_json),
        profiling_profile.parse,
        shown.profile,
    ),
}
