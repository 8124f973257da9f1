"""Gradients from end to end on a GPU: `kernelwright.compile`, a call, `.backward()`; all rows together within one rounding
to bf16, and each within twice the error of bf16's own autograd and what the forward kernel's own rounding of weights
leaves where do . v and do . o nearly cancel. The kernel alone, with o and lse from fp64, is test_backward.py's."""

import pathlib

import pytest
import torch

import kernelwright
from kernelwright.capture import load
from differentiated import EXAMPLES, HALF_ULP, NOISE, may_be_off, weights_of
from test_backward import LARGEST_OWN, SHAPES

pytestmark = pytest.mark.gpu
WHOLE = 2.0**-8  # of the norm of all rows together
OF_SCORES, LEAST = 2.0**-22, 2.0**-100  # families/attention/truth.cpp; num/compare.h
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module", params=EXAMPLES.keys())
def trained(request):
    """(compiled, function, its Example, number of query heads, of key heads, whether it takes [B, rows, heads, D])"""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    spec = load.load(str(ROOT / f"examples/{request.param}.py"))
    turned = request.param == "causal"
    heads = 2 if turned else 1
    fast = kernelwright.compile(spec.function, tuple(spec.values), target="sm_90a", backward=True)
    return fast, spec.function, EXAMPLES[request.param], spec.values[0].shape[heads], spec.values[1].shape[heads], turned


def inputs_of(trained, shape, spread=1.0):
    """q, k, v and the output's gradient, as the function takes them, and what else it takes."""
    _, _, example, H, G, turned = trained
    B, M, N = shape[0], shape[2] if example.square else shape[1], shape[2]
    drawn = [(torch.randn(B, heads, rows, example.columns, device="cuda") * spread).bfloat16()
             for heads, rows in ((H, M), (G, N), (G, N), (H, M))]
    return [t.transpose(1, 2).contiguous() if turned else t for t in drawn], example.others(B, M, N)


def gradients(function, inputs, others):
    leaves = [t.detach().clone().requires_grad_() for t in inputs[:3]]
    return torch.autograd.grad(function(*leaves, *others.values()), leaves, inputs[3])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 2.0, 6.0])
def test_gradients_are_autograds_row_by_row(trained, shape, spread):
    torch.manual_seed(1)
    fast, function, example, *_, turned = trained
    inputs, others = inputs_of(trained, shape, spread)
    got, own = gradients(fast, inputs, others), gradients(function, inputs, others)
    want = list(gradients(function, [t.double() for t in inputs], others))
    q, k, v, d_o = (t.transpose(1, 2) if turned else t for t in inputs)
    p, slope, lse = weights_of(example, q, k, others)
    group, slope = q.shape[1] // k.shape[1], slope.abs()
    norm = lambda x: x.double().norm(dim=-1)
    floats = NOISE + OF_SCORES * torch.where(lse.isfinite(), lse.abs(), 0)[..., None]
    off = floats * slope * p * norm(d_o)[..., None] * norm(v).repeat_interleave(group, 1)[..., None, :]
    # What the rounding of all weights but a row's largest leaves of o (operator/families/attention/truth.cpp), times d_o.
    smaller = torch.where(p == p.amax(-1, keepdim=True), 0, p)
    left = HALF_ULP * (smaller * norm(v).repeat_interleave(group, 1)[..., None, :]).sum(-1, keepdim=True)
    left = slope * p * left * norm(d_o)[..., None]
    if want[2].isnan().any():  # a row without a key: NaN in PyTorch, and with it the gradients of all values
        dv = (p.mT @ d_o.double()).unflatten(1, (-1, group)).sum(2)
        want[2] = dv.transpose(1, 2) if turned else dv
    by_rows = lambda off: ((off * norm(k).repeat_interleave(group, 1)[..., None, :]).sum(-1),
                           (off * norm(q)[..., None]).sum(-2).unflatten(1, (-1, group)).sum(2), torch.zeros_like(norm(v)))
    for name, x, y, z, noise, weights in zip(("dq", "dk", "dv"), got, want, own, by_rows(off), by_rows(left)):
        x, y, z = (t.double().transpose(1, 2) if turned else t.double() for t in (x, y, z))
        difference, size = (x - y).norm(dim=-1), y.norm(dim=-1)
        theirs = ((z - y).norm(dim=-1) / size).nan_to_num(0).clamp(max=LARGEST_OWN)
        allowed = 2 * theirs.clamp(min=HALF_ULP) * size.clamp(min=LEAST) + noise
        ratio = (difference / (allowed + weights)).nan_to_num(0).max().item()
        beyond = (difference > allowed).double().mean().item()
        whole = (difference.norm() / (size.norm() + noise.norm() / WHOLE)).item()
        print(f"{shape} spread {spread} {name}: worst row {ratio:.2f} of accepted, whole {whole:.2e}, rows that need it {beyond:.1e}")
        assert not x.isnan().any() and ratio <= 1 and whole <= WHOLE


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_what_is_learned_are_autograds(trained, shape):
    """Where only they are asked for, too: the operands need none then."""
    fast, function, example, *_, turned = trained
    if not example.learned:
        pytest.skip("it learns nothing")
    torch.manual_seed(4)
    inputs, others = inputs_of(trained, shape)
    q, k, v, d_o = (t.transpose(1, 2) if turned else t for t in inputs)
    p, _, lse = weights_of(example, q, k, others)

    def of(call, tensors):
        given = {n: t.to(torch.float64 if tensors[0].dtype == torch.float64 else t.dtype) if n in example.learned else t
                 for n, t in others.items()}
        leaves = [given[n].detach().clone().requires_grad_() for n in example.learned]
        given |= dict(zip(example.learned, leaves))
        return torch.autograd.grad(call(*tensors[:3], *given.values()), leaves, tensors[3])

    got, own, want = of(fast, inputs), of(function, inputs), of(function, [t.double() for t in inputs])
    for name, x, z, y in zip(example.learned, got, own, want):
        allowed = may_be_off(example, name, q, k, v, d_o, others, p, lse) + 2.0**-23 * y.abs()
        ratio = ((x - y).abs() / allowed).nan_to_num(0).max().item()
        print(f"{shape} d_{name}: worst {ratio:.2f} of accepted, whole {((x - y).norm() / y.norm()).item():.1e}, "
              f"bf16's own {((z - y).norm() / y.norm()).item():.1e}")
        assert x.dtype == others[name].dtype and not x.isnan().any() and ratio <= 1


def test_an_optimizer_sees_what_autograd_would(trained):
    """Some steps on q, k and v: the losses follow those of the function itself in fp32."""
    fast, function, *_ = trained
    torch.manual_seed(3)
    start, others = inputs_of(trained, (1, 384, 384))
    losses = []
    for call, dtype in ((fast, torch.bfloat16), (function, torch.float32)):
        leaves = [t.float().clone().requires_grad_() for t in start[:3]]
        optimizer = torch.optim.SGD(leaves, lr=30.0)
        losses.append([])
        for _ in range(20):
            loss = (call(*(x.to(dtype) for x in leaves), *others.values()).float() - start[3].float()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    ours, theirs = torch.tensor(losses)
    print(f"loss {theirs[0]:.4f} to {theirs[-1]:.4f}, off by {((ours - theirs).abs() / theirs).max():.1e}")
    assert theirs[-1] < theirs[0] and ((ours - theirs).abs() / theirs).max() < 5e-3
