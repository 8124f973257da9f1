"""kernelwright.launch against the stand-in driver of tests/fake_cuda."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from kernelwright_cli import ROOT
from tiny_cubin import tiny_cubin

FAKE = ROOT / "build/tests/fake_cuda"


def copy_kernel():
    x = {"kind": "tensor", "dtype": "bf16", "dims": ["B", "H", "M", "D"]}
    return {"entry": "copy", "target": "sm_90a", "threads": 128, "shared_bytes": 0,
            "parameter_bytes": 168, "cluster": 1, "resident": 1, "grid": "M", "constants": {"D": 64},
            "arguments": [
                {"name": "x", "offset": 0, "access": "read", **x},
                {"name": "y", "offset": 56, "access": "write", **x},
                {"name": "lse", "kind": "tensor", "offset": 112, "dtype": "f32",
                 "dims": ["B", "H", "M"], "access": "write"},
                {"name": "queue", "kind": "workspace", "offset": 160, "bytes": 4}]}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    if not (FAKE / "libcuda.so.1").exists():
        pytest.skip("the stand-in driver is not built: ninja -C build fake_cuda")
    folder = tmp_path_factory.mktemp("kernel") / "copy"
    folder.mkdir()
    (folder / "launch.json").write_text(json.dumps(copy_kernel()))
    (folder / "kernel.cubin").write_bytes(tiny_cubin("copy", 168))
    (folder.parent / "launch.json").write_text(json.dumps(copy_kernel()))
    script = pathlib.Path(__file__).with_name("launch_on_fake_cuda.py")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(FAKE), "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run([sys.executable, script, str(folder)], env=environment, text=True,
                         capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_inputs_and_outputs_come_from_launch_json(result):
    assert (result["inputs"], result["outputs"]) == (["x"], ["y", "lse"])


def test_a_call_launches_on_the_tensors_given(result):
    assert result["copied"] and result["lse"]


def test_a_prepared_launch_uses_the_plan_of_the_same_shapes(result):
    assert result["prepared"] and result["plans"] == 1


def test_an_output_is_allocated_in_the_layout_of_its_input(result):
    assert result["output_strides"] == [960, 64, 192, 1] and result["lse_shape"] == [2, 3, 5]


@pytest.mark.parametrize("what, message", [
    ("too_many", "2 inputs are given; the kernel takes x"),
    ("missing", "missing: x"),
    ("twice", "x: given by position and by name"),
    ("on_cpu", "x is on cpu, the kernel on GPU 0"),
    ("shape", "error[launch.shape]: y has 4 in dimension 2 (M), but x has 5"),
    ("dtype", "error[launch.dtype]: x is f16, the kernel takes bf16"),
])
def test_misuse_is_refused_by_the_arguments_name(result, what, message):
    assert result[what] == message


def test_a_folder_without_a_cubin_is_refused(result):
    assert "kernel.cubin: No such file" in result["folder"]
