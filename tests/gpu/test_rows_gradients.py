"""Gradients where rows change before their product (RoPE, QK-norm), from end to end on a GPU, against autograd in fp64 and beside
bf16's own autograd, which rounds the changed rows as a kernel does: where scores are large, that is most of either's error, and
that of one row is one draw. So the worst row errs by no more than autograd's worst (of its size and a usual one's), or than one
rounding, and all together by no more than all of autograd's."""

import pathlib
from unittest import mock

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
        size = y.norm(dim=-1)
        usual = size.square().mean().sqrt()
        # Of a single key the gradient of a score is 0, and fp32's is not quite.
        worst, of_theirs = (((t - y).norm(dim=-1) / (size + usual + 0.1)).max().item() for t in (x, z))
        whole, whole_of_theirs = ((t - y).norm().item() / (y.norm().item() + 0.1) for t in (x, z))
        print(f"{spec.name} {shape} spread {spread} {name}: worst row {worst:.2e}, autograd's {of_theirs:.2e}; "
              f"whole {whole:.2e}, autograd's {whole_of_theirs:.2e}")
        assert not x.isnan().any() and worst <= max(HALF_ULP, 1.25 * of_theirs)
        assert S == 1 or whole <= max(WHOLE, 1.1 * whole_of_theirs)


def in_double(function, arguments):
    """The function without its own conversions: `.float()` and `.to` of 64 bits stay."""
    to = torch.Tensor.to
    # Put back as it was: a method of the class's own, which it inherits, would be another fingerprint for what is compiled next.
    with mock.patch.multiple(torch.Tensor, float=lambda t: t,
                             to=lambda t, *a, **k: t if t.dtype == torch.float64 else to(t, *a, **k)):
        return function(*arguments)
