"""launch.h and the runtime agree for every head dimension and element type, not only for those of the
kernel's text: the plans of its TL with other constants."""

import subprocess

import pytest

from agreement import agreement_of, assert_agree
from kernelwright_cli import ROOT

TEXT = (ROOT / "tests/corpus/sm90_attention_fwd.tl").read_text()


def plan(folder, element, d, v):
    program = folder / "kernel.tl"
    changed = TEXT.replace("element bf16", f"element {element}", 1)
    changed = changed.replace("param D = 128, V = 128", f"param D = {d}, V = {v}", 1)
    assert f"element {element}\n" in changed and f"param D = {d}, V = {v}\n" in changed
    program.write_text(changed)
    return subprocess.run([str(ROOT / "build/tests/launch_plan"), program, folder, "made_here"],
                          text=True, capture_output=True)


@pytest.mark.parametrize("element, d, v", [("f16", 96, 96), ("bf16", 192, 128)])
def test_launch_h_packs_and_refuses_as_the_runtime_does(element, d, v, tmp_path):
    run = plan(tmp_path, element, d, v)
    assert run.returncode == 0, run.stderr
    assert_agree(agreement_of(tmp_path, tmp_path))


def test_a_head_dimension_that_is_no_whole_panels_is_refused(tmp_path):
    run = plan(tmp_path, "bf16", 100, 100)
    assert run.returncode == 2 and "[launch.box]" in run.stderr
    assert "'q' has 100 columns; the copy engine moves panels of 64 or 32" in run.stderr
