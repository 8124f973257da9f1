"""FP8 operands, from plain PyTorch to a checked kernel; and what is refused of them."""

import json

import pytest
from kernelwright.capture import capture
from kernelwright_cli import assert_refused, call

SPEC = """import torch


def fp8(q, k, v{more}):
    {body}


def example_inputs():
    k, v = (torch.randn(2, 2, 96, {columns}).to(torch.float8_e4m3fn) for _ in range(2))
    return torch.randn(2, 4, 96, {columns}).to({q}), k, v{values}
"""
PLAIN = """group = q.shape[1] // k.shape[1]
    q, k, v = (x.to(torch.float32) for x in (q, k, v))
    s = q @ k.repeat_interleave(group, dim=1).mT / 8
    return (s.softmax(-1) @ v.repeat_interleave(group, dim=1)).to(torch.float16)"""


SCALED = """i, j = (torch.arange(x.shape[2])[:, None] for x in (q, k))
    q, k, v = q.to(torch.bfloat16), *(x.to(torch.bfloat16).repeat_interleave(2, dim=1) for x in (k, v))
    s = (q @ k.mT * (q_scale * k_scale / 8)).masked_fill(j.mT > i, -torch.inf)
    return s.softmax(-1) @ (v * v_scale)"""


def captured(folder, body=PLAIN, q="torch.float8_e4m3fn", columns=64, more="", values=""):
    path = folder / "fp8.py"
    path.write_text(SPEC.format(body=body, q=q, columns=columns, more=more, values=values))
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Causal, one scale for each operand, grouped heads."""
    return captured(tmp_path_factory.mktemp("fp8"), SCALED, more=", q_scale, k_scale, v_scale",
                    values=", 0.5, 1.25, 0.75")


@pytest.fixture(scope="module")
def made(source):
    out = source.parent / "out"
    run = call("make", source, "--target", "sm_89", "--from", "sketch", "--out", out)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 spills" in run.stderr and "bf16 (q, k, v e4m3)" in run.stderr
    return out


def test_make_gives_a_folder_as_any_other(made):
    certificate = json.loads((made / "certificate.json").read_text())
    assert certificate["verdict"] == "holds"
    assert "narrow" in [r["rule"] for r in certificate["transfer"]["rules"]]
    arguments = {a["name"]: a for a in json.loads((made / "launch.json").read_text())["arguments"]}
    assert [arguments[name]["dtype"] for name in "qkvo"] == ["e4m3", "e4m3", "e4m3", "bf16"]


@pytest.mark.parametrize("was, slip", [
    ("upcast k_raw -> k_s by WARPGROUPS", ""),  # nothing fills it
    ("upcast v_raw -> v_s by WARPGROUPS\n        sync_block",
     "sync_block\n        upcast v_raw -> v_s by WARPGROUPS"),
    ("cp_async_wait 1\n        upcast v_raw", "cp_async_wait 2\n        upcast v_raw"),
])
def test_a_slip_is_refuted(made, source, tmp_path, was, slip):
    program = (made / "kernel.tl").read_text()
    assert was in program, program
    (tmp_path / "slip.tl").write_text(program.replace(was, slip, 1))
    run = call("check", tmp_path / "slip.tl", "--spec", source, "--check", "quick")
    assert run.returncode == 1, run.stdout + run.stderr


def test_the_expert_kernel_takes_fp8_too_and_keys_and_values_alone(tmp_path):
    source = captured(tmp_path, PLAIN, q="torch.float16")
    run = call("make", source, "--target", "sm_90", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    program = (tmp_path / "out/kernel.tl").read_text()
    assert "k: in e4m3[B, G, N, D]" in program and "q: in element[B, H, M, D]" in program


@pytest.mark.parametrize("more", [[], ["--from", "sketch"]], ids=["the expert's text", "from the sketch"])
def test_a_pass_before_hoppers_kernel_makes_elements_of_it(source, tmp_path, more):
    run = call("make", source, "--target", "sm_90a", *more, "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    program = (tmp_path / "out/kernel.tl").read_text()
    was = "write_row k_rows[b, h, r] over j < D = k[b, h, r, j]"
    assert was in program and "tma_load q_rows[" in program and "upcast" not in program
    (tmp_path / "slip.tl").write_text(program.replace(was, was + " + 1.0", 1))
    run = call("check", tmp_path / "slip.tl", "--spec", source, "--check", "quick")
    assert run.returncode == 1, run.stdout + run.stderr


@pytest.mark.parametrize("target, code, part", [
    ("sm_80", "driver.dtype", "`q` is of e4m3, and sm_80"), ("sm_75", "driver.dtype", "`q` is of e4m3, and sm_75"),
])
def test_targets_without_it_refuse(source, tmp_path, target, code, part):
    run = call("make", source, "--target", target, "--out", tmp_path / "out")
    assert_refused(run, code, part)


def test_a_product_of_fp8_is_refused(tmp_path):
    path = tmp_path / "product.py"
    path.write_text("""import torch


def product(a, b):
    return (a.to(torch.float32) @ b.to(torch.float32)).to(torch.bfloat16)


def example_inputs():
    return torch.randn(96, 64).to(torch.float8_e4m3fn), torch.randn(64, 80).to(torch.float8_e4m3fn)
""")
    capture.capture_file(str(path), None, None, tmp_path / "captured")
    run = call("make", tmp_path / "captured", "--out", tmp_path / "out")
    assert_refused(run, "transfer.dtype", "a is e4m3, the product is of bf16")
