"""RMS normalisations of rows, as PyTorch's users write them: one form, whatever the spelling; and what is refused."""

import pytest
from kernelwright.capture import capture
from kernelwright.capture.diagnostic import Problem
from kernelwright_cli import call

SPEC = """import torch
import torch.nn.functional as F


def norm(x, {more}weight{eps}):
    {body}


def example_inputs():
    return ({values}torch.ones(256, dtype=torch.bfloat16){number})
"""
ROWS = "torch.randn(4, 40, 256, dtype=torch.bfloat16), "


def captured(folder, *lines, residual=False, number="", rows=ROWS):
    path = folder / "norm.py"
    path.write_text(SPEC.format(body="\n    ".join(lines), more="residual, " if residual else "", eps=", eps" if number else "",
                                values=rows * (1 + residual), number=", " + number if number else ""))
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


def form(folder, *lines, **parts):
    run = call("capture", captured(folder, *lines, **parts), "--form")
    assert run.returncode == 0, run.stderr
    return [line.strip() for line in run.stdout.splitlines()]


PLAIN = ["row     x[b, i, d]", "eps     1e-06", "weight  weight[d]"]


@pytest.mark.parametrize("lines", [
    ("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight",),
    ("y = x.float()", "y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)", "return weight * y.to(x.dtype)"),
    ("return (x.float() / torch.sqrt((x.float() ** 2).mean(-1, keepdim=True) + 1e-6) * weight).to(x.dtype)",),
    ("return x * (x.square().sum(-1, keepdim=True) / x.shape[-1] + 1e-6) ** -0.5 * weight",),
    ("return F.rms_norm(x, (256,), weight, 1e-6)",),
    ("return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps=1e-6)",),
])
def test_ways_to_write_it_give_one_form(tmp_path, lines):
    said = form(tmp_path, *lines)
    assert said[0] == "norm: bf16, an RMS normalisation of rows, C 256; any B, M"
    assert said[1:4] == PLAIN


def test_a_sum_is_a_second_output(tmp_path):
    said = form(tmp_path, "h = x + residual", "return F.rms_norm(h, (256,), weight, 1e-5), h", residual=True)
    assert said[1:] == ["row     x[b, i, d] + residual[b, i, d]", "eps     1e-05", "weight  weight[d]", "also    the sum"]


def test_eps_may_be_an_argument_and_rows_may_lack_batches(tmp_path):
    said = form(tmp_path, "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight", number="1e-6",
                rows="torch.randn(40, 256, dtype=torch.bfloat16), ")
    assert said == ["norm: bf16, an RMS normalisation of rows, C 256; any M", "row     x[i, d]", "eps     eps",
                    "weight  weight[d]"]


@pytest.mark.parametrize("line, why", [
    ("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)", "no weight"),
    ("return F.layer_norm(x, (256,), weight, None, 1e-6)", "not the RMS normalisation"),
    ("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) * 2 + 1e-6) * weight", "not the RMS normalisation"),
    ("return x * torch.rsqrt(x.abs().mean(-1, keepdim=True) + 1e-6) * weight", "not the RMS normalisation"),
])
def test_another_function_of_rows_is_refused(tmp_path, line, why):
    run = call("capture", captured(tmp_path, line), "--form")
    assert run.returncode == 2
    assert "error[spec.rms_norm]" in run.stderr and why in run.stderr and "norm.py:6" in run.stderr


def test_a_second_output_that_is_not_the_sum_is_refused(tmp_path):
    run = call("capture", captured(tmp_path, "h = x + residual", "return F.rms_norm(h, (256,), weight, 1e-5), h * 2",
                                   residual=True), "--form")
    assert run.returncode == 2 and "the second output is not the sum" in run.stderr


def test_a_function_of_one_argument_without_sums_is_none_of_ours(tmp_path):
    with pytest.raises(Problem, match="attention has q, k and v"):
        captured(tmp_path, "return x * weight")
