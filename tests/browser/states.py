"""Pages of every kind of report, for a browser to open and to draw.

Their pictures lie in ``artifacts/browser``. Look at each as somebody who knows nothing
of perfkit: what should this person do, how much does it bring, and how sure is that?
"""

from dataclasses import replace

import perfkit
from perfkit.findings import store
from perfkit.findings.page import findings_page, laid_out
from perfkit.machine.checks import checks
from perfkit.machine.record import Busy, Load
from perfkit.machines.compare import compare
from perfkit.questions.replay import BROUGHT
from tests.machines import looked, pairs
from tests.machines.passports import passport

OPEN = "data-pipeline-variants-prefetch-batch-first-numpy-numpy-by-element"
# Of each machine of a class: times the usual speed, processor, cores.
CLASS = {
    "ada": (0.5, "Intel Core i5-8250U", 4),
    "bob": (1.0, "AMD Ryzen 5 5600", 6),
    "eve": (1.1, "Intel Core i5-12400", 6),
    "kim": (4.0, "AMD Ryzen 9 7950X", 16),
}
# A desktop with what slows it.
ILL = replace(
    looked.FULL,
    processor=replace(
        looked.FULL.processor, governor="powersave", frequency_driver="acpi-cpufreq"
    ),
    load=Load(
        others=5.2, memory_free=50 * 10**9, top=(Busy(program="renderer", cores=5.0),)
    ),
    start=replace(looked.FULL.start, said=()),
)
NAMES = ("not known yet", "two machines", "class", "doctor ill")


def reports(folder):
    """The page of each kind, in the order of their names; the folder is empty."""
    yield findings_page([store.load(BROUGHT / f"{OPEN}.json")])
    slow = replace(pairs.one_core(), label="laptop, in a container")
    two = compare(pairs.passport(label="laptop"), slow)
    yield two.export(folder / "two.html").read_text()
    for name, (speed, cpu, cores) in CLASS.items():
        machine = replace(
            pairs.MACHINE, cpu=cpu, cores=cores, cores_granted=float(cores)
        )
        one = passport(name, speed, machine=machine, checks=checks(machine))
        store.save(one, path=folder / f"{name}.json")
    yield perfkit.classroom(folder).export(folder / "class.html").read_text()
    yield laid_out([(looked.examination(*checks(ILL), machine=ILL).report, ())])
