"""Gradients that are not of one softmax's output alone, from end to end on a GPU: of weights that are functions of their own
scores, and of the log-sums beside the output. Each row within twice the error of bf16's own autograd, and what such an
error is of a row of usual size where its terms cancel; all rows together within one rounding to bf16."""

import pathlib

import pytest
import torch

import kernelwright
from kernelwright.capture import load

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
HALF_ULP = WHOLE = 2.0**-8
SHAPES = [(2, 300, 300), (1, 777, 333), (1, 64, 1000), (3, 1, 129)]


@pytest.fixture(scope="module", params=["sigmoid", "relu", "comb", "with_lse"])
def trained(request):
    """(compiled, function, number of query heads, of key heads, what else it takes of a batch size)"""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    spec = load.load(str(ROOT / f"examples/{request.param}.py"))
    others = lambda B: [torch.randint(0, 200, (B,), dtype=torch.int32, device="cuda")] if len(spec.values) > 3 else []
    fast = kernelwright.compile(spec.function, tuple(spec.values), target="sm_90a", backward=True)
    return fast, spec.function, spec.values[0].shape[1], spec.values[1].shape[1], others


def gradients(function, inputs, others, of_outputs):
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    outputs = function(*leaves, *others)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return torch.autograd.grad(outputs, leaves, [of.to(output.dtype) for of, output in zip(of_outputs, outputs)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_gradients_are_autograds_row_by_row(trained, shape, spread):
    torch.manual_seed(1)
    fast, function, H, G, others = trained
    B, M, N = shape
    inputs = [(torch.randn(B, heads, rows, 128, device="cuda") * spread).bfloat16() for heads, rows in ((H, M), (G, N), (G, N))]
    of_outputs = [torch.randn(B, H, M, 128, device="cuda").bfloat16(), torch.randn(B, H, M, device="cuda")]
    others = others(B)
    got, own = (gradients(f, inputs, others, of_outputs) for f in (fast, function))
    want = gradients(function, [t.double() for t in inputs], others, [t.double() for t in of_outputs])
    for name, x, y, z in zip(("dq", "dk", "dv"), got, want, own):
        x, y, z = (t.double() for t in (x, y, z))
        difference, size = (x - y).norm(dim=-1), y.norm(dim=-1)
        usual = size.square().mean().sqrt()
        theirs = ((z - y).norm(dim=-1) / size).nan_to_num(0, 0, 0).clamp(max=0.1)
        ratio = (difference / (2 * theirs.clamp(min=HALF_ULP) * size + HALF_ULP * usual)).max().item()
        whole = (difference.norm() / y.norm()).item()
        print(f"{function.__name__} {shape} spread {spread} {name}: worst row {ratio:.2f} of accepted, whole {whole:.2e}")
        assert not x.isnan().any() and ratio <= 1 and whole <= WHOLE


def test_an_output_that_nobody_uses_counts_as_zeros(trained):
    fast, function, H, G, _ = trained
    if function.__name__ != "with_lse":
        pytest.skip("one output")
    inputs = [torch.randn(1, heads, 200, 128, device="cuda").bfloat16() for heads in (H, G, G)]
    for used in (0, 1):
        found = []
        for f, given in ((fast, inputs), (function, [t.double() for t in inputs])):
            leaves = [t.clone().requires_grad_() for t in given]
            found.append(torch.autograd.grad(f(*leaves)[used].double().square().sum(), leaves, allow_unused=True))
        for x, y in zip(*found):
            y = torch.zeros_like(x) if y is None else y
            assert (x - y).double().norm() <= 2 * WHOLE * y.double().norm()
