"""Functions that give no tensor, or of which nothing can be seen: refused by their line, never our own fault."""

import subprocess
import sys

import pytest
from kernelwright_cli import assert_refused, call

from kernelwright.capture import capture, goldens, load
from kernelwright.capture.diagnostic import Problem

TEXT = """import torch


def f(q, k, v):
    o = (q @ k.mT).softmax(-1) @ v
    return {returned}


def example_inputs():
    return [torch.randn({sizes}, dtype=torch.bfloat16) for _ in range(3)]
"""


def written(tmp_path, returned="o", sizes="2, 4, 64, 64"):
    path = tmp_path / "f.py"
    path.write_text(TEXT.format(returned=returned, sizes=sizes))
    return str(path)


@pytest.mark.parametrize("returned, said", [("o, q.shape[2]", "f returns among others a int"), ("{'o': o}", "f returns a dict")])
def test_what_is_no_tensor_is_refused_at_the_function(returned, said, tmp_path):
    with pytest.raises(Problem, match=said) as refused:
        capture.capture(load.load(written(tmp_path, returned)), "bf16", goldens.CASES[:2])
    assert (refused.value.code, refused.value.line) == ("spec.output", 4)


def test_a_tensor_without_elements_is_refused_by_its_name(tmp_path):
    with pytest.raises(Problem, match=r"gives q as \[0, 4, 0, 64\]") as refused:
        load.load(written(tmp_path, sizes="0, 4, 0, 64"))
    assert (refused.value.code, refused.value.line) == ("spec.inputs", 9)


@pytest.mark.parametrize("raised", ["SystemExit(0)", "KeyboardInterrupt"])
def test_a_function_that_ends_python_is_refused(raised, tmp_path):
    path = written(tmp_path).replace("f.py", "g.py")
    with open(path, "w") as file:
        file.write(TEXT.format(returned="o", sizes="2, 4, 64, 64").replace("    return o", f"    raise {raised}").replace("def f", "def g"))
    run = subprocess.run([sys.executable, "-m", "kernelwright.capture", path, "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert run.returncode == 2, run.stderr
    assert "spec.exits" in run.stdout and raised.split("(")[0] in run.stdout


def test_a_file_that_ends_its_process_by_a_signal_is_refused(tmp_path):
    path = written(tmp_path).replace("f.py", "g.py")
    with open(path, "w") as file:
        file.write(TEXT.format(returned="o", sizes="2, 4, 64, 64").replace("def f", "def g") + "\n\nimport os\nos.kill(os.getpid(), 11)\n")
    run = call("capture", path, "--out", tmp_path / "out")
    assert_refused(run, "spec.exits", "ended by signal 11")
