"""What the Python side of capture says, beyond tests/spec (which a C++ test runs)."""

import json
import subprocess
import sys

import pytest
import torch

from kernelwright.capture import goldens, graph, load, trace
from kernelwright.capture.diagnostic import Problem
from kernelwright_cli import ROOT, assert_refused, call

TAIL = """

def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v%s
"""


def spec_of(tmp_path, body, more="", name="attention"):
    path = tmp_path / f"{name}.py"
    path.write_text("import torch\nimport torch.nn.functional as F\n" + body + TAIL % more)
    return load.load(str(path))


def traced(spec, dtype=None):
    return trace.trace(spec, trace.convert(spec, dtype))


def test_a_size_that_the_code_fixes_is_noted_with_its_line(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    mask = torch.ones(96, 96, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)
""")
    notes = traced(spec).notes
    assert ("size 2 of q is fixed at 96 here", 6) in notes


def test_sizes_that_vary_are_not_noted(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
""")
    assert traced(spec).notes == []


def test_a_number_becomes_an_argument_where_pytorch_lets_it(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v, scale, cap):
    return F.scaled_dot_product_attention(q, k, v * cap, scale=scale)
""", ", 0.125, 2.0")
    result = traced(spec)
    assert result.is_argument == [True, True, True, False, True]
    assert result.notes == [("scale = 0.125 is a constant of the kernel: PyTorch needs its value here", 5)]


KERNEL_BENCH = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.rand(heads))

    def forward(self, Q, K, V):
        i = torch.arange(Q.shape[2])[:, None]
        bias = self.slopes[:, None, None] * (torch.arange(K.shape[2]) - i)
        return nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=bias.to(Q.dtype))


def get_inputs():
    return [torch.rand(2, 4, 96, 64) for _ in range(3)]


def get_init_inputs():
    return [4]
"""


def test_kernel_bench_parameters_become_arguments(tmp_path):
    path = tmp_path / "1_attention.py"
    path.write_text(KERNEL_BENCH)
    with pytest.raises(Problem) as refused:
        traced(load.load(str(path)))
    assert refused.value.code == "spec.dtype" and "--dtype" in refused.value.hint
    spec = load.load(str(path))
    text = graph.to_json(spec, traced(spec, torch.float16))
    assert [a["name"] for a in text["arguments"]] == ["Q", "K", "V", "slopes"]
    assert text["dtype"] == "f16"


def test_the_truth_is_the_graph_in_fp64_even_where_the_user_casts(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    s = (q @ k.mT).float() / 8
    return torch.softmax(s, -1, dtype=torch.float32).to(torch.bfloat16) @ v
""")
    result = traced(spec)
    inputs = [torch.randn(1, 4, 5, 64, dtype=torch.bfloat16) for _ in range(3)]
    truth, own = goldens._run_case(spec, result, goldens.InFp64(result.program.graph_module), inputs)
    q, k, v = (x.double() for x in inputs)
    exact = torch.softmax(q @ k.mT / 8, -1) @ v
    assert truth.dtype == torch.float64 and (truth - exact).abs().max() < 1e-14
    assert own.dtype == torch.bfloat16 and 0 < (own - exact).abs().max() < 0.1


def test_the_truth_of_integers_times_a_fraction_is_fp64_too(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
    return (q @ k.mT + (0.1 * (j - i)).to(q.dtype)).softmax(-1) @ v
""")
    result = traced(spec)
    inputs = [torch.randn(1, 4, 5, 64, dtype=torch.bfloat16) for _ in range(3)]
    truth, _ = goldens._run_case(spec, result, goldens.InFp64(result.program.graph_module), inputs)
    q, k, v = (x.double() for x in inputs)
    bias = 0.1 * (torch.arange(5)[None] - torch.arange(5)[:, None]).double()
    exact = torch.softmax(q @ k.mT + bias, -1) @ v
    assert (truth - exact).abs().max() < 1e-13 and torch.get_default_dtype() == torch.float32


def test_integers_are_drawn_over_their_whole_range():
    prefix = torch.tensor([17, 130], dtype=torch.int32)
    ranges = [goldens._draw_of(prefix, n, 256, False) for n in range(4)]
    assert ranges[0]["times_longest"] == 1
    assert [(r["low"], r["high"]) for r in ranges] == [(0, 256), (17, 130), (0, 17), (17, 130)]


def test_integers_finer_than_the_sizes_are_drawn_beyond_them():
    tokens = torch.tensor([8192, 5000], dtype=torch.int32)  # 511 keys stand for 16 tokens each
    assert goldens._times_longest(tokens, 511) == 16 and goldens._times_longest(tokens, 8192) == 1
    assert goldens._times_longest(torch.tensor([2**30]), 511) == 1  # a word of bits
    ranges = [goldens._draw_of(tokens, n, 100, False, 16) for n in range(4)]
    assert [(r["low"], r["high"]) for r in ranges] == [(0, 1600), (5000, 8192), (0, 101), (5000, 8192)]
    assert ranges[0]["times_longest"] == 16


def test_a_sequence_dimension_is_told_from_a_head_dimension(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    return F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)))
""")
    shape = next(n for n in traced(spec).program.graph.nodes).meta["val"].shape
    assert isinstance(shape[1], torch.SymInt) and shape[2] == 96


def sizes_of(result):
    """Of each argument's dimensions: a number, or None for one that varies."""
    nodes = [n for n in result.program.graph.nodes if n.op == "placeholder"]
    return [[d if isinstance(d, int) else None for d in n.meta["val"].shape] for n in nodes]


@pytest.mark.parametrize("product", ["(q @ k.mT + bias).softmax(-1) @ v",
                                     "F.scaled_dot_product_attention(q * 2, k, v, attn_mask=bias)",
                                     "torch.einsum('bhij,bhjd->bhid', (torch.einsum("
                                     "'bhid,bhjd->bhij', q, k) + bias).softmax(-1), v)"])
def test_as_many_queries_as_columns_are_told_apart(tmp_path, product):
    spec = spec_of(tmp_path, f"""
def attention(q, k, v, bias):
    return {product}
""", ", q")
    spec.values = [torch.randn(2, 4, 64, 64, dtype=torch.bfloat16) for _ in range(4)]
    *operands, bias = sizes_of(traced(spec))
    assert operands == 3 * [[None, 4, None, 64]] and bias[2:] == [None, None]


def test_as_many_heads_as_columns_are_told_from_queries(tmp_path):
    spec = spec_of(tmp_path, """
def attention(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return (q @ k.mT).softmax(-1) @ v
""")
    spec.values = [torch.randn(2, 96, 64, 64, dtype=torch.bfloat16) for _ in range(3)]
    assert sizes_of(traced(spec)) == 3 * [[None, None, 64, 64]]


def run(path, out):
    command = [sys.executable, "-m", "kernelwright.capture", str(path), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "python")


def test_what_the_user_prints_is_not_mixed_with_diagnostics(tmp_path):
    path = tmp_path / "attention.py"
    path.write_text("import torch\nprint('hello')\ndef attention(q, k, v):\n    return q @ k\n" + TAIL % "")
    result = run(path, tmp_path / "out")
    assert result.returncode == 2
    problem = json.loads(result.stdout)["diagnostics"][0]
    assert problem["code"] == "spec.run" and problem["place"]["line"] == 4
    assert "Traceback" not in result.stderr and "hello" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_epsilon_that_is_not_said_is_that_of_fp32(tmp_path, dtype):
    path = tmp_path / "norm.py"
    path.write_text(f"""import torch

def norm(x, weight):
    return torch.nn.functional.rms_norm(x, (256,), weight)

def example_inputs():
    return torch.randn(2, 64, 256, dtype={dtype}), torch.randn(256, dtype={dtype})
""")
    spec = load.load(str(path))
    result = traced(spec)
    inputs = [torch.full((1, 3, 256), 2.0**-13, dtype=dtype), torch.ones(256, dtype=dtype)]
    truth, own = goldens._run_case(spec, result, goldens.InFp64(result.program.graph_module), inputs)
    assert torch.allclose(truth, own.double(), rtol=2**-7) and truth.max() < 0.4


def test_a_model_that_asks_whether_it_is_trained_is_said_to_be_in_eval(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("""import torch

class Model(torch.nn.Module):
    def forward(self, q, k, v):
        weights = (q @ k.mT * 0.125).softmax(-1)
        return (weights * 0.5 if self.training else weights) @ v

def get_inputs():
    return [torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3)]
""")
    assert [note for note in traced(load.load(str(path))).notes if "eval()" in note[0] and note[1] == 6]


@pytest.mark.parametrize("left_out", ["m > 3", "m == 1"])
def test_integers_of_eight_bits_are_drawn_within_their_type(tmp_path, left_out):
    """Beyond 255 there is no such argument: PyTorch wraps it and the form's side keeps the largest."""
    spec_of(tmp_path, f"""
def attention(q, k, v, m):
    return (q @ k.mT * 0.125).masked_fill({left_out}, -torch.inf).softmax(-1) @ v
""", ", torch.arange(96, dtype=torch.uint8) % 6")
    run = call("capture", tmp_path / "attention.py", "--form", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    index = json.loads((tmp_path / "out/goldens.json").read_text())
    drawn = [d for case in [*index["cases"], *index["far"]] for d in case["draws"] if d["name"] == "m"]
    assert max(d["high"] for d in drawn) == 255 and not any("times_longest" in d for d in drawn)


@pytest.mark.parametrize("function, example, kind", [("log", "rand", "uniform"), ("log", "randn", "normal"), ("exp", "rand", "normal")])
def test_what_is_positive_in_the_example_stays_so_under_a_logarithm(tmp_path, function, example, kind):
    """It was drawn normal, as operands are, and rows of which the function is NaN refuted every program."""
    spec_of(tmp_path, f"""
def attention(q, k, v, gates):
    return ((q @ k.mT).float() * 0.125 + torch.{function}(gates)[:, :, None, :]).softmax(-1).to(v.dtype) @ v
""", f", torch.{example}(2, 4, 96)")
    run = call("capture", tmp_path / "attention.py", "--form", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    index = json.loads((tmp_path / "out/goldens.json").read_text())
    assert {d["kind"] for case in index["cases"] for d in case["draws"] if d["name"] == "gates"} == {kind}


def test_an_argument_of_eight_bits_is_refused_where_a_kernel_would_read_it(tmp_path):
    spec_of(tmp_path, """
def attention(q, k, v, m):
    return (q @ k.mT * 0.125).masked_fill(m > 3, -torch.inf).softmax(-1) @ v
""", ", torch.arange(96, dtype=torch.uint8) % 6")
    run = call("transfer", "tests/corpus/sm90_attention_fwd.tl", "--spec", tmp_path / "attention.py", "--target", "sm_90a")
    assert_refused(run, "transfer.dtype", "attention.py:4:24", "m is u8", "torch.int32")
