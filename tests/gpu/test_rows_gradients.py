"""Gradients where rows change before their product (RoPE, QK-norm), from end to end on a GPU: each row within twice the error
of bf16's own autograd on it, which rounds the changed rows too, and of a row of usual size what autograd errs by on the
whole, twice; all rows together within what autograd errs by, or one rounding to bf16."""

import pathlib

import pytest
import torch

import kernelwright
from kernelwright.capture import load

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
HALF_ULP = WHOLE = 2.0**-8
SHAPES = [(2, 300), (1, 777), (3, 129), (1, 1)]


def angles(S, D):
    """[S, D] of rotary positions, or [S, D / 2] with one for both of a pair."""
    rates = 10000.0 ** (-torch.arange(0, 128, 2, device="cuda") / 128)
    out = torch.outer(torch.arange(S, device="cuda"), rates)
    return out.repeat(1, 2) if D == 128 else out


def tables_of(values, B, S):
    """What the example takes beside q, k and v, for this batch and length: weights as they are, tables of positions anew."""
    found = []
    for n, t in enumerate(values):
        if t.dim() == 1:
            torch.manual_seed(n)
            found.append(torch.randn_like(t, device="cuda"))
            continue
        table = (torch.cos if n % 2 == len(values) % 2 else torch.sin)(angles(S, t.shape[-1]))
        found.append((table.expand(B, S, -1) if t.dim() == 3 else table).to(t.dtype).contiguous())
    return found


@pytest.fixture(scope="module", params=["rope", "rope_interleaved", "qk_norm", "qk_norm_rope"])
def trained(request):
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    spec = load.load(str(ROOT / f"examples/{request.param}.py"))
    return kernelwright.compile(spec.function, tuple(spec.values), target="sm_90a", backward=True), spec


def gradients(function, inputs, others, of_output):
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    output = function(*leaves, *others)
    return torch.autograd.grad(output, leaves, of_output.to(output.dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_gradients_are_autograds_row_by_row(trained, shape, spread):
    fast, spec = trained
    B, S = shape
    others = tables_of(spec.values[3:], B, S)
    torch.manual_seed(1)
    inputs = [(torch.randn(B, t.shape[1], S, 128, device="cuda") * spread).bfloat16() for t in spec.values[:3]]
    of_output = torch.randn(B, inputs[0].shape[1], S, 128, device="cuda").bfloat16()
    got, own = (gradients(f, inputs, others, of_output) for f in (fast, spec.function))
    exact = [t.double() if t.is_floating_point() else t for t in others]
    want = gradients(lambda *a: in_double(spec.function, a), [t.double() for t in inputs], exact, of_output.double())
    for name, x, y, z in zip(("dq", "dk", "dv"), got, want, own):
        x, y, z = (t.double() for t in (x, y, z))
        difference, size = (x - y).norm(dim=-1), y.norm(dim=-1)
        usual = size.square().mean().sqrt()
        theirs = ((z - y).norm(dim=-1) / size).nan_to_num(0, 0, 0).clamp(max=0.1)
        whole, whole_of_theirs = ((t - y).norm().item() / max(y.norm().item(), 1e-5) for t in (x, z))
        on_the_whole = max(HALF_ULP, 2 * whole_of_theirs)
        # Of a single key the gradient of a score is 0, and fp32's is not quite.
        ratio = (difference / (2 * theirs.clamp(min=HALF_ULP) * size + on_the_whole * usual + 1e-4)).max().item()
        print(f"{spec.name} {shape} spread {spread} {name}: worst row {ratio:.2f} of accepted, whole {whole:.2e}, autograd's {whole_of_theirs:.2e}")
        assert not x.isnan().any() and ratio <= 1 and (S == 1 or whole <= max(WHOLE, 1.1 * whole_of_theirs))


def in_double(function, arguments):
    """The function without its own conversions: `.float()` and `.to` of 64 bits stay."""
    to, as_float = torch.Tensor.to, torch.Tensor.float
    torch.Tensor.float = lambda t: t
    torch.Tensor.to = lambda t, *a, **k: t if t.dtype == torch.float64 else to(t, *a, **k)
    try:
        return function(*arguments)
    finally:
        torch.Tensor.to, torch.Tensor.float = to, as_float
