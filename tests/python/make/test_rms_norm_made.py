"""RMS normalisations of rows, from plain PyTorch to a checked kernel; what no kernel has; and slips.

The kernels are kernels/sm80/rms_norm.cu and, of a sum of two, add_rms_norm.cu. PyTorch is loaded once: what Python
captures is captured in this process.
"""

import json
import re

import pytest
from kernelwright.capture import capture
from kernelwright_cli import ROOT, assert_refused, call

SPEC = """import torch
import torch.nn.functional as F


def norm(x, weight{more}):
    {body}


def example_inputs():
    return (torch.randn(2, 5, {columns}, dtype=torch.{dtype}), torch.randn({columns}, dtype=torch.{dtype}){values})
"""
PLAIN = "return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(x.dtype)"
SUM = dict(more=", residual", values=", torch.randn(2, 5, 264, dtype=torch.bfloat16)")
OF_SUM = """h = x + residual
    return F.rms_norm(h, (264,), weight, 1e-6), h"""


def captured(folder, body, columns=264, dtype="bfloat16", more="", values=""):
    path = folder / "norm.py"
    path.write_text(SPEC.format(body=body, columns=columns, dtype=dtype, more=more, values=values))
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


@pytest.mark.parametrize("body, parts, code, part", [
    ("h = x + residual\n    return F.rms_norm(h, (264,), weight, 1e-6)", SUM, "transfer.output", "writes the sum h"),
    ("return F.rms_norm(x, (260,), weight, 1e-6)", {"columns": 260}, "transfer.columns", "260 columns"),
    ("return F.rms_norm(x, (16392,), weight, 1e-6)", {"columns": 16392}, "transfer.columns", "registers of a warpgroup hold 16384"),
])
def test_what_no_kernel_has_is_refused(tmp_path, body, parts, code, part):
    run = call("make", captured(tmp_path, body, **parts), "--out", tmp_path / "out")
    assert_refused(run, code, part)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("norm")
    run = call("make", captured(folder, PLAIN), "--target", "sm_80", "--check", "quick", "--out", folder / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def made_of_sum(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sum")
    run = call("make", captured(folder, OF_SUM, **SUM), "--target", "sm_90a", "--check", "quick", "--out", folder / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


def test_make_gives_a_folder_as_any_other(made, made_of_sum):
    for folder, text, outputs in ((made, "rms_norm", {"y"}), (made_of_sum, "add_rms_norm", {"y", "h"})):
        certificate = json.loads((folder / "certificate.json").read_text())
        assert certificate["verdict"] == "holds"
        assert certificate["expert"]["name"] == f"kernels/sm80/{text}.cu"
        assert [r["rule"] for r in certificate["transfer"]["rules"]] == ["columns"]
        cases = json.loads((folder / "prove.json").read_text())["cases"]
        assert {g["output"] for case in cases for g in case["goldens"]} == outputs
        assert (folder / "launch.h").exists() and "rsqrt" in (folder / "report.html").read_text()
        assert call("verify", folder).returncode == 0


def test_the_tiles_are_those_of_the_next_number_of_columns(made):
    rows = json.loads((ROOT / "kernels/sm80/rms_norm.tiles.json").read_text())["rows"]
    row = next(r for r in rows if r["D"] >= 264 and "sm_80" in r["targets"])
    assert f"param WARPGROUPS = {row['constants']['WARPGROUPS']}, RESIDENT = {row['constants']['RESIDENT']}" \
        in (made / "kernel.tl").read_text()


def test_eps_may_be_the_users_and_elements_half(tmp_path):
    source = captured(tmp_path, "return F.rms_norm(x, (1032,), weight) * 1", columns=1032, dtype="float16")
    run = call("make", source, "--target", "sm_90a", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    program = (tmp_path / "out/kernel.tl").read_text()
    assert "element f16" in program and "param C = 1032" in program and "1.0e-06" not in program


def write(folder, program):
    (folder / "program.tl").write_text(program)
    return folder / "program.tl"


def checked(folder, captured, program, was, slip):
    assert was in program
    (folder / "slip.tl").write_text(program.replace(was, slip, 1))
    return call("check", folder / "slip.tl", "--spec", captured, "--check", "quick", "--json")


@pytest.mark.parametrize("was, slip", [
    ("x_r[j] * factor * weight_r[j]", "x_r[j] * factor"),
    ("over j = x_r[j] * x_r[j]", "over j = x_r[j]"),
    ("let m = c.m * WARPGROUPS + me", "let m = c.m * WARPGROUPS"),
])
def test_a_slip_is_refuted(made, tmp_path, was, slip):
    run = checked(tmp_path, made.parent / "captured", (made / "kernel.tl").read_text(), was, slip)
    assert run.returncode == 1, run.stdout + run.stderr


UNDER_THE_ROOT = ["rsqrt(squares / f32(C)) + eps", "rsqrt(squares / f32(C))", "rsqrt(squares / f32(C - 1) + eps)"]


@pytest.mark.parametrize("body, factor", [
    ("(x_r[j] + 4.0) * (x_r[j] + 4.0)", "rsqrt((squares - plain * 8.0) / f32(C) - 16.0 + eps)"),  # of small numbers nothing is left
    ("(x_r[j] * 1073741824.0) * (x_r[j] * 1073741824.0)",
     "rsqrt(squares / f32(C) / 1073741824.0 / 1073741824.0 + eps)"),  # large ones overflow
    ("(x_r[j] * 32768.0) * (x_r[j] * 32768.0)", "rsqrt(squares / f32(C) / 1073741824.0 + eps)"),  # from 2^46 on
])
def test_a_mean_that_is_right_in_the_reals_alone_is_refuted(made, tmp_path, body, factor):
    program = (made / "kernel.tl").read_text()
    program = re.sub(r"( *)sum_line squares over j = .*\n", rf"\1sum_line squares over j = {body}\n\1sum_line plain over j = x_r[j]\n",
                     program)
    program = re.sub(r"rsqrt\(squares / f32\(C\) \+ eps\)", factor, program)
    run = call("check", write(tmp_path, program), "--spec", made.parent / "captured")
    assert run.returncode == 1 and "refuted" in run.stdout and "y, b 0" in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("slip", UNDER_THE_ROOT)
def test_a_slip_under_the_root_that_drawn_values_cannot_show_is_not_passed(made, tmp_path, slip):
    run = checked(tmp_path, made.parent / "captured", (made / "kernel.tl").read_text(), "rsqrt(squares / f32(C) + eps)", slip)
    if slip in UNDER_THE_ROOT[:2]:  # a row of zeros is planted, and has no root
        assert run.returncode == 1, run.stdout + run.stderr
    else:
        assert run.returncode == 3 and "check.opaque" in run.stdout + run.stderr, run.stdout + run.stderr


@pytest.mark.parametrize("slip", UNDER_THE_ROOT)
def test_a_slip_under_the_root_that_values_show_is_refuted(made, tmp_path, slip):
    source = captured(tmp_path, "return F.rms_norm(x, (16,), weight, 0.25)", columns=16)
    program = (made / "kernel.tl").read_text().replace("C = 264", "C = 16").replace("f32 = 1.0e-06", "f32 = 0.25")
    assert call("check", write(tmp_path, program), "--spec", source, "--check", "quick").returncode == 0
    run = checked(tmp_path, source, program, "rsqrt(squares / f32(C) + eps)", slip)
    assert run.returncode == 1, run.stdout + run.stderr


@pytest.mark.parametrize("was, slip, output", [
    ("x_r[j] + residual_r[j]", "x_r[j] - residual_r[j]", "y"),
    ("over j = h_r[j] * h_r[j]", "over j = x_r[j] * x_r[j]", "y"),
    ("h_r[j] * factor * weight_r[j]", "x_r[j] * factor * weight_r[j]", "y"),
])
def test_a_slip_in_a_sum_is_refuted(made_of_sum, tmp_path, was, slip, output):
    run = checked(tmp_path, made_of_sum.parent / "captured", (made_of_sum / "kernel.tl").read_text(), was, slip)
    assert run.returncode == 1, run.stdout + run.stderr
    assert json.loads(run.stdout)["counterexample"]["output"] == output
