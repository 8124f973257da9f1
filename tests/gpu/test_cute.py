"""Kernels in CuTe, proved on the GPU in the place of the kernels that they spell (docs/cute.md)."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from cute_build import compile_cute  # noqa: E402
from kernelwright_cli import COMMAND, call  # noqa: E402

PROVE = ROOT / "build/kernelwright-prove"
pytestmark = [pytest.mark.gpu,
              pytest.mark.skipif(not (COMMAND.exists() and PROVE.exists()), reason="kernelwright is not built")]


@pytest.mark.parametrize("example", ["full", "prefix_lm", "alibi", "softcap", "relative_bias", "dense_bias"])
def test_it_is_proved_in_the_place_of_the_other_kernel(example, tmp_path):
    import torch

    target = "sm_{}{}".format(*torch.cuda.get_device_capability())
    if target not in {"sm_80", "sm_86", "sm_89", "sm_90"}:
        pytest.skip(f"the Ampere-class kernel is not made for {target}")
    made, text = tmp_path / "made", tmp_path / "cute.cu"
    run = call("make", ROOT / f"examples/{example}.py", "--target", target, "--check", "quick", "--out", made)
    assert run.returncode in (0, 3), run.stderr  # 3: quick says so
    run = call("lower", made / "kernel.tl", "--to", "cute", "--target", target, "--out", text)
    assert run.returncode == 0, run.stderr
    cubin, _ = compile_cute(text.read_text(), target)
    (made / "kernel.cubin").write_bytes(cubin)
    run = subprocess.run([PROVE, made], text=True, capture_output=True, timeout=600)
    print(run.stdout, run.stderr)
    assert run.returncode == 0, run.stderr
