"""Integers of positions that are made of reals: taken where fp32 and fp64 give the same at every one, refused elsewhere."""

import pytest
import torch

from kernelwright.capture import exactness, integers_of_reals, load, trace
from kernelwright.capture.diagnostic import Problem

FILE = """import math
import torch
RATE = torch.tensor(0.0048)
RATE_64 = torch.tensor([0.0048], dtype=torch.float64)

def attention(q, k, v, starts, slopes):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    d, M, N = i - j, q.shape[2], k.shape[2]
    x = {value}
    return (q @ k.mT * 0.125 + x).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randint(96, (2, 1, 1, 1), dtype=torch.int32), torch.rand(4, 1, 1)
"""
T5 = "(torch.log(d.abs().float() / 8) / math.log(16) * 8)"


@pytest.fixture
def looked_at(tmp_path):
    def look(value):
        path = tmp_path / "attention.py"
        path.write_text(FILE.format(value=value))
        spec = load.load(str(path))
        traced = trace.trace(spec, trace.convert(spec, None))
        integers_of_reals.refuse_integers_of_data(traced, exactness.refuse_lost_integers(traced))
    return look


@pytest.mark.parametrize("value", [
    f"torch.where(d.abs() < 8, d.abs(), 8 + {T5}.long().clamp(max=7))",
    f"torch.where(d.abs() < 8, d.abs(), torch.minimum(8 + {T5}.long(), torch.full_like(d, 15)))",
    "torch.log2(d.abs() + 1.0).floor()", "d.abs().float().sqrt().int()", "torch.log2(d.abs() + 1.0).int().clamp(max=9)",
    "torch.floor(i / 49) * torch.ceil(j / 3)", "(j / N).int()", "(i * 0.25 - j / 8).floor()", "(d.abs() * 0.0048).int().clamp(max=2)",
    "(d * RATE).int()", "(d.double() * 0.0048).int()", "d.sign()", "d.float() % 8", "slopes.floor()", "(slopes * 8).floor() / 8", "(starts > 3).float().sum().int()"])
def test_what_both_give_everywhere_is_taken(looked_at, value):
    looked_at(value)


@pytest.mark.parametrize("value, why", [
    ("(d * 0.0048).int()", "of 625 PyTorch makes 3 and fp64 2"),
    ("((d * 0.0048).int() > 2) * 1.0", "of 625 PyTorch makes 3 and fp64 2"),
    ("(d.clamp(0, 700) * 0.0048).long().clamp(max=9)", "of 625 PyTorch makes 3 and fp64 2"),
    ("(d * 0.0048).ceil()", "of 625 PyTorch makes 4 and fp64 3"),
    ("(d.double() * RATE_64).float().int()", "of 625 PyTorch makes 3 and fp64 2"),
    ("torch.floor(torch.log(d.abs() + 1.0) / math.log(10))", "of 999 PyTorch makes 3 and fp64 2"),
    ("d.abs() // 0.3", "of 3 PyTorch makes 9 and fp64 10"),
    ("torch.div(d.float(), 0.3, rounding_mode='floor')", "PyTorch makes"),
    ("d.abs() * 0.0048 % 3", "a remainder is made of a real here"),
    ("(d * 0.0048 - 3.0).sign()", "a sign is made of a real here"),
    ("((5 * i - 5 * j) * (3 / 1325000)).int()", "PyTorch makes 3 and fp64 2"),
    ("((j[:, None] - j[None, :]) * 0.0048).int()", "of 625 PyTorch makes 3 and fp64 2"),
    ("(i * 0.3 - j * 0.3).int()", "several integers"),
    ("((j * 0.3)[:, None] - (j * 0.3)[None, :]).int()", "several integers"),
    ("(j / N * 32).int()", "several integers"),
    ("((d - d) / (d - d)).int()", "of 0 PyTorch makes -2.1474836e+09 and fp64 0"),  # no number: on a GPU it is 0
    ("(d.float().sqrt() * 0.5).long().clamp(min=-1)", "of -1 PyTorch makes -9.223372e+18 and fp64 0"),
    ("(i / j).int()", "several integers"),
    ("(starts * 0.3).int()", "made of data"),
    ("(starts / 3).int()", "made of data"),
    ("(d * slopes).int()", "aten.mul in line 9 rounds it: it is made of data"),
    ("d // slopes", "made of data")])
def test_what_the_rounding_decides_is_refused_at_its_line(looked_at, value, why):
    with pytest.raises(Problem) as caught:
        looked_at(value)
    assert caught.value.code == "spec.rounding" and caught.value.line == 9 and why in caught.value.message


def test_a_comparison_with_a_tensor_of_a_number_is_one_with_the_number(looked_at):
    with pytest.raises(Problem, match="compares reals that are computed of positions"):
        looked_at("(d * RATE > 3) * 1.0")


def test_the_default_type_is_what_it_was(looked_at):
    with pytest.raises(Problem):
        looked_at("(d * 0.0048).int()")
    assert torch.get_default_dtype() == torch.float32
