"""KernelBench's form: Model, get_inputs and get_init_inputs, as people write them."""

import pytest
import torch

from kernelwright.capture import capture, goldens, graph, load, trace
from kernelwright.capture.diagnostic import Problem
from kernelwright_cli import assert_refused, call

FILE = """import torch
import torch.nn as nn
{head}

class Model(nn.Module):
    def __init__(self, {init}):
        super().__init__()
        {setup}

    def forward(self, Q: torch.Tensor, K, V):
        {body}


heads, length, dim = 4, 96, 64


def get_inputs():
    {inputs}


def get_init_inputs():
    return [{values}]
"""
PLAIN = {"head": "", "init": "dim", "setup": "self.scale = dim**-0.5",
         "body": "return ((Q @ K.mT) * self.scale).softmax(-1) @ V",
         "inputs": "return [torch.rand(2, heads, length, dim) for _ in range(3)]", "values": "dim"}


def write(folder, name="12_Plain-Attention.py", **changes):
    path = folder / name
    path.write_text(FILE.format(**{**PLAIN, **changes}))
    return str(path)


def traced(path):
    spec = load.load(path)
    return graph.to_json(spec, trace.trace(spec, trace.convert(spec, torch.bfloat16)))


def line_of(path, part):
    return next(n for n, line in enumerate(open(path), 1) if part in line)


def test_fp32_inputs_need_a_type_and_names_are_those_of_forward(tmp_path):
    path = write(tmp_path)
    spec = load.load(path)
    with pytest.raises(Problem) as refused:
        trace.convert(spec, None)
    assert refused.value.line == line_of(path, "def forward") and "--dtype" in refused.value.hint
    text = traced(path)
    assert text["name"] == "Plain_Attention" and text["dtype"] == "bf16"
    assert [a["name"] for a in text["arguments"]] == ["Q", "K", "V"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the file asks for")
@pytest.mark.parametrize("inputs", [
    'return [torch.rand(2, heads, length, dim, device="cuda") for _ in range(3)]',
    'return [torch.rand(2, heads, length, dim).cuda() for _ in range(3)]',
    'return [torch.rand(2, heads, length, dim).to("cuda:0", non_blocking=True) for _ in range(3)]',
    'return [torch.rand(2, heads, length, dim, device=torch.device("cuda", 0)) for _ in range(3)]',
    'return [torch.rand(2, heads, length, dim, pin_memory=False).to(device="cuda") for _ in range(3)]',
])
def test_tensors_on_a_gpu_need_none_here(inputs, tmp_path):
    spec = load.load(write(tmp_path, inputs=inputs, head='WARM = torch.zeros(1, device="cuda")'))
    assert [v.device.type for v in spec.values] == 3 * ["cpu"] and spec.values[0].shape == (2, 4, 96, 64)


def test_a_projection_is_refused_at_its_line(tmp_path):
    path = write(tmp_path, setup="self.out = nn.Linear(dim, dim)", body="return self.out((Q @ K.mT).softmax(-1) @ V)")
    run = call("capture", path, "--dtype", "bf16")
    assert_refused(run, "spec.projection", f"{path}:{line_of(path, 'nn.Linear')}:", "out is an nn.Linear")


def test_parameters_become_arguments_with_their_lines(tmp_path):
    path = write(tmp_path, init="heads", setup="self.slopes = nn.Parameter(torch.rand(heads))",
                 values="heads", body="""i = torch.arange(Q.shape[2])[:, None]
        bias = self.slopes[:, None, None] * (torch.arange(K.shape[2]) - i)
        return nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=bias.to(Q.dtype))""")
    slopes = traced(path)["arguments"][-1]
    assert slopes["name"] == "slopes" and slopes["line"] == line_of(path, "self.slopes =")


def test_of_inputs_of_gigabytes_only_the_shape_is_asked_for(tmp_path):
    path = write(tmp_path, inputs="return [torch.rand(4096, 128, 65536, dim) for _ in range(3)]")
    spec = load.load(path)  # 8 TB each
    assert [v.shape for v in spec.values] == 3 * [(2, 128, 65536, 64)]


@pytest.mark.parametrize("changes, code, part", [
    ({"inputs": "return 7"}, "spec.inputs", "def get_inputs"),
    ({"inputs": "return [torch.rand(2, heads, length, dim)] * 2"}, "spec.inputs", "def get_inputs"),
    ({"inputs": "raise ValueError('no')"}, "spec.run", "raise ValueError"),
    ({"inputs": "return [torch.rand(2, heads, 0, dim)] * 3"}, "spec.inputs", "def get_inputs"),
    ({"setup": "raise ValueError('no')"}, "spec.run", "raise ValueError"),
    ({"head": "import not_there"}, "spec.run", "import not_there"),
])
def test_what_is_wrong_is_refused_at_its_line(changes, code, part, tmp_path):
    path = write(tmp_path, **changes)
    with pytest.raises(Problem) as refused:
        load.load(path)
    assert (refused.value.code, refused.value.line) == (code, line_of(path, part))


def test_a_model_that_counts_its_calls_is_refused(tmp_path):
    path = write(tmp_path, setup="self.calls = [0]", body="self.calls[0] += 1\n        return ((Q @ K.mT) * min(self.calls[0], 3))"
                 ".softmax(-1) @ V")
    spec = load.load(path)
    with pytest.raises(Problem, match="changes a Model, which it reads: .*'calls'") as refused:
        capture.capture(spec, "bf16", goldens.CASES[:4])
    assert refused.value.code == "spec.not_a_function"
