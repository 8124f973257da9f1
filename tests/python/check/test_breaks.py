"""The errors that the conformance tests must find (tests/gpu/conformance/breaks.txt) still are errors.

A line names a file of the vocabulary and changes its text; where the text has moved on, the line
would change nothing, and the tests find nothing. Whether they find it takes a GPU.
"""

import subprocess

import pytest
from kernelwright_cli import ROOT

LINES = [line for line in (ROOT / "tests/gpu/conformance/breaks.txt").read_text().splitlines()
         if line and not line.startswith("#")]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[0])
def test_a_break_changes_its_file(line):
    _, family, file, function, expression = line.split(maxsplit=4)
    text = (ROOT / "cuda/kw" / file).read_text()
    changed = subprocess.run(["sed", expression], input=text, capture_output=True, text=True,
                             check=True).stdout
    assert changed != text, f"{expression} changes nothing in cuda/kw/{file}"
    assert f'"{function.rstrip(",")}' in (ROOT / f"tests/gpu/conformance/{family}.cu").read_text()
