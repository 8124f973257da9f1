"""Every example becomes a kernel that its check lets pass: two of them, chosen by commit (sample.py).

What conftest.py's fixture makes makes is held against much more; here it is that `make` ends
well, and that an example says what a newcomer needs to know of it.
"""

import ast

import pytest
from kernelwright_cli import ROOT, call
from sample import sample

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
CHOSEN = sample("examples", EXAMPLES, 2)


@pytest.mark.parametrize("name", CHOSEN)
def test_make_ends_well(tmp_path, name):
    run = call("make", ROOT / f"examples/{name}.py", "--out", tmp_path / name)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / name / "kernel.cubin").exists()

    run = call("exact", tmp_path / name, "--out", tmp_path / "exact")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "exact/kernel.cubin").exists()


@pytest.mark.parametrize("name", EXAMPLES)
def test_says_what_it_is_and_its_shapes(name):
    module = ast.parse((ROOT / f"examples/{name}.py").read_text())
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    assert name in functions and "example_inputs" in functions
    assert ast.get_docstring(module), "no first words"
    said = ast.get_docstring(functions[name])
    missing = [a.arg for a in functions[name].args.args if said is None or a.arg not in said]
    assert not missing, f"shapes of {missing} are not said"


def test_several_specifications_are_made_in_turn(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("def broken(q:\n")
    also = tmp_path / "also.py"
    also.write_text("x = 1\n")
    run = call("make", broken, also, "--out", tmp_path / "out")
    assert run.returncode == 2
    assert "made      0 of 2; not" in run.stderr and f"{also} (2)" in run.stderr
