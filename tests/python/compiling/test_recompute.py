"""backward="recompute": gradients of pieces are the function's, and what cannot be cut is refused."""

import pytest
import torch
import torch.nn.functional as F

from kernelwright.capture.dependencies import Dependencies
from kernelwright.compiling import recompute
from kernelwright.errors import GradientError

SLOPES = torch.tensor([0.5, 0.25])


def signature(count, more=()):
    operands = [{"kernel": name, "kernel_dims": [0, 1, 2, 3], "tensor": True, "dtype": "bf16",
                 "dims": ["B", 2, "M" if name == "q" else "N", 64]} for name in "qkv"]
    return {"arguments": operands + [{"kernel": None, "tensor": t, "dtype": d, "dims": []} for t, d in more]}


def values(m=60, n=70, dtype=torch.bfloat16):
    torch.manual_seed(m)
    return [torch.randn(2, 2, length, 64).to(dtype) for length in (m, n, n)]


def arange(q, k):
    return (torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device))


def causal(q, k, v):
    i, j = arange(q, k)
    return (q @ k.mT * 0.125).masked_fill(j > i, -torch.inf).softmax(-1) @ v


def triangle(q, k, v):
    keep = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    return torch.where(keep, q @ k.mT * 0.125, -torch.inf).softmax(-1) @ v


def flag(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def bottom_right(q, k, v):
    i, j = arange(q, k)
    return (q @ k.mT * 0.125).masked_fill(j > i + k.shape[2] - q.shape[2], -torch.inf).softmax(-1) @ v


def with_lse(q, k, v):
    s = q @ k.mT * 0.125
    return s.softmax(-1) @ v, s.logsumexp(-1)


def slopes(q, k, v):
    i, j = arange(q, k)
    return (q @ k.mT * 0.125 + SLOPES[:, None, None] * (j - i)).softmax(-1).to(v.dtype) @ v


def dense_bias(q, k, v, bias):
    return (q @ k.mT * 0.125 + bias).softmax(-1) @ v


CASES = {"causal": (causal, []), "triangle": (triangle, []), "flag": (flag, []),
         "bottom_right": (bottom_right, []), "with_lse": (with_lse, []), "slopes": (slopes, []),
         "dense_bias": (dense_bias, [torch.randn(2, 2, 60, 70).bfloat16()])}


def made(function, more):
    places = Dependencies(function).places
    kinds = [(True, "bf16") for _ in more] + [(True, "f32") for _ in places]
    return recompute.Recompute(function, [*values(), *more], places, signature(3, kinds)), places


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_pieces_are_the_functions(name, monkeypatch):
    function, more = CASES[name]
    differentiate, places = made(function, more)
    monkeypatch.setattr(recompute, "PIECE_BYTES", 4 * 6 * 2 * 2 * 70 * 13)  # 13 rows
    inputs = [*values(), *more, *(p.get() for p in places)]
    leaves = [x.double().requires_grad_() for x in inputs]
    for place, leaf in zip(places, leaves[3 + len(more):]):
        monkeypatch.setitem(function.__globals__, place.name, leaf)
    outputs = function(*leaves[: 3 + len(more)])
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    gradients = [torch.randn_like(o) for o in outputs]
    want = torch.autograd.grad(outputs, leaves, gradients)
    got = differentiate._backward(gradients, *inputs)
    assert [g.dtype for g in got] == [x.dtype for x in inputs]
    for g, w in zip(got, want):
        assert (g.double() - w).norm() < 0.02 * w.norm()


def mixes_rows(q, k, v):
    return ((q - q.mean(2, keepdim=True)) @ k.mT).softmax(-1) @ v


def fixed_rows(q, k, v):
    return ((q @ k.mT) + torch.zeros(60, 1)).to(q.dtype).softmax(-1) @ v


def one_length(q, k, v):
    return ((q @ k.mT) + torch.zeros(k.shape[2], q.shape[2]).mT + torch.zeros(q.shape[2], q.shape[2])
            ).to(q.dtype).softmax(-1) @ v


@pytest.mark.parametrize("function, why", [
    (mixes_rows, "in pieces of them it gives other values than whole"),
    (fixed_rows, "their number is fixed at 60"),
])
def test_a_function_that_cannot_be_cut_is_refused_with_the_reason(function, why):
    with pytest.raises(GradientError, match=why):
        made(function, [])


def test_a_function_of_one_length_is_refused_with_the_reason():
    with pytest.raises(GradientError, match="makes queries and keys one length"):
        recompute.Recompute(one_length, values(60, 60), [], signature(3))
