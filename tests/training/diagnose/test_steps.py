import subprocess
import sys

from perfkit.training.diagnose import steps


def test_marked_data_are_gone_through_as_they_are():
    marked = steps([1, 2, 3])
    assert [batch for _ in range(2) for batch in marked] == [1, 2, 3] * 2
    assert len(marked) == 3
    assert steps([])


def test_marking_steps_loads_no_numerical_library():
    code = (
        "import sys, perfkit; list(perfkit.steps([1])); "
        "print({'numpy', 'tensorflow', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
