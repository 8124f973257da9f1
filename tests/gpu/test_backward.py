"""Kernels of gradients on a GPU, through our own launcher, against autograd in fp64: row by row, each within twice the
error of bf16's own autograd on that row.

KERNELWRIGHT_BACKWARD names a folder of folders that `kernelwright make examples/NAME.py --backward --out FOLDER/NAME`
wrote, for machines without the program; without it they are made.
"""

import os
import pathlib
import subprocess

import pytest
import torch

from differentiated import EXAMPLES, HALF_ULP, NOISE, may_be_off, weights_of
from kernelwright.capture import load

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
SHAPES = [(1, 64, 128), (2, 513, 500), (1, 333, 777), (1, 777, 333), (2, 1024, 1000), (1, 1, 40), (1, 300, 2),
          (1, 3000, 3000)]  # B, M, N
LARGEST_OWN = 2.0**-4  # num/compare.h


@pytest.fixture(scope="module", params=EXAMPLES.keys())
def made(request, tmp_path_factory):
    """(kernel, function, its Example, number of query heads, of key heads)"""
    from kernelwright.runtime.launch import Kernel
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    folder = os.environ.get("KERNELWRIGHT_BACKWARD")
    folder = pathlib.Path(folder or tmp_path_factory.mktemp("backward")) / request.param
    if not folder.exists():
        subprocess.run([ROOT / "build/kernelwright", "make", ROOT / f"examples/{request.param}.py", "--backward",
                        "--check", "quick", "--out", folder], check=True)
    spec = load.load(str(ROOT / f"examples/{request.param}.py"))
    turned = request.param == "causal"  # which takes [B, rows, heads, D]
    heads = 2 if turned else 1
    function = (lambda *x: spec.function(*(t.transpose(1, 2) for t in x)).transpose(1, 2)) if turned else spec.function
    return Kernel(folder / "backward"), function, EXAMPLES[request.param], spec.values[0].shape[heads], spec.values[1].shape[heads]


def drawn(made, shape, spread=1.0):
    """q, k, v and the output's gradient, in memory as [B, rows, heads, D], and what else the function takes."""
    _, _, example, H, G = made
    B, M, N = shape[0], shape[2] if example.square else shape[1], shape[2]
    tensors = [(torch.randn(B, rows, heads, example.columns, device="cuda") * spread).bfloat16().transpose(1, 2)
               for heads, rows in ((H, M), (G, N), (G, N), (H, M))]
    return tensors, example.others(B, M, N)


def read_by(kernel, others):
    """Those that its gradients depend on: a sink is in the log-sums alone."""
    return {name: value for name, value in others.items() if name in kernel.inputs}


def gradients(made, inputs):
    """(dq, dk, dv) of the kernel, of autograd in fp64 and in bf16, what fp32 may be off by, the output in fp64, and by name
    (the kernel's, autograd's, what it may be off by) of what is learned."""
    kernel, function, example = made[:3]
    (q, k, v, d_o), others = inputs
    leaves = [t.double().requires_grad_() for t in (q, k, v)]
    learned = {name: others[name].double().requires_grad_() for name in example.learned}
    o = function(*leaves, *(learned.get(name, value) for name, value in others.items()))
    dq, dk, dv, *of_learned = torch.autograd.grad(o, [*leaves, *learned.values()], d_o.double())
    narrow = [t.clone().requires_grad_() for t in (q, k, v)]
    own = torch.autograd.grad(function(*narrow, *others.values()), narrow, d_o)
    p, slope, lse = weights_of(example, q, k, others)
    o = o.detach().nan_to_num(0)  # as the forward kernel has rows without a key
    got = dict(zip(kernel.outputs, kernel(q=q, k=k, v=v, o=o.float().contiguous(), do_rows=d_o, d_o=d_o,
                                          lse=lse.float().contiguous(), **read_by(kernel, others))))
    group = q.shape[1] // k.shape[1]
    norm = lambda x: x.double().norm(dim=-1)
    off = NOISE * slope.abs() * p * norm(d_o)[..., None] * norm(v).repeat_interleave(group, 1)[..., None, :]
    if dv.isnan().any():  # a row without a key: NaN in PyTorch, and with it the gradients of all values
        dv = (p.mT @ d_o.double()).unflatten(1, (-1, group)).sum(2)
    noise = ((off * norm(k).repeat_interleave(group, 1)[..., None, :]).sum(-1),
             (off * norm(q)[..., None]).sum(-2).unflatten(1, (-1, group)).sum(2), torch.zeros_like(norm(v)))
    of_learned = {name: (got[f"d_{name}"].double(), want, may_be_off(example, name, q, k, v, d_o, others, p, lse))
                  for name, want in zip(learned, of_learned)}
    return [got[name].double() for name in ("dq", "dk", "dv")], (dq, dk, dv), own, noise, o, of_learned


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_gradients_are_autograds_row_by_row(made, shape, spread):
    torch.manual_seed(1)
    got, want, own, noise, _, learned = gradients(made, drawn(made, shape, spread))
    for name, x, y, z, off in zip(("dq", "dk", "dv"), got, want, own, noise):
        difference, size = (x - y).norm(dim=-1), y.norm(dim=-1)
        assert not x.isnan().any() and not y.isnan().any()
        theirs = ((z.double() - y).norm(dim=-1) / size).nan_to_num(0).clamp(max=LARGEST_OWN)
        allowed = 2 * theirs.clamp(min=HALF_ULP) * size + off
        ratio = (difference / allowed).nan_to_num(0).max().item()
        print(f"{shape} spread {spread} {name}: worst row {ratio:.2f} of accepted, whole {(difference.norm() / size.norm()).item():.2e}")
        assert ratio <= 1
    for name, (x, y, allowed) in learned.items():
        ratio = ((x - y).abs() / (allowed + 2.0**-23 * y.abs())).nan_to_num(0).max().item()
        print(f"{shape} spread {spread} d_{name}: worst {ratio:.2f} of accepted, whole {((x - y).norm() / y.norm()).item():.2e}")
        assert not x.isnan().any() and not y.isnan().any() and ratio <= 1


@pytest.mark.parametrize("shape", SHAPES[1:4], ids=str)
def test_what_holds_of_any_attention_holds_of_the_gradients(made, shape):
    """o is linear in v: sum <o, do> = sum <v, dv>; scores do not change when q grows as k shrinks: sum <q, dq> = sum <k, dk>."""
    torch.manual_seed(2)
    (q, k, v, d_o), _ = inputs = drawn(made, shape)
    (dq, dk, dv), _, _, _, o, _ = gradients(made, inputs)
    groups = (q.shape[0], k.shape[1], -1)
    for a, b, c, d in ((o, d_o, v, dv), (q, dq, k, dk)):
        one, other = (a.double() * b.double()).sum((-1, -2)).view(groups).sum(-1), (c.double() * d).sum((-1, -2))
        # Gradients are off by 0.0024 of themselves at random, so a sum by as much of its terms' norm: six times that.
        terms = (a.double() * b.double()).pow(2).sum((-1, -2)).view(groups).sum(-1).sqrt()
        assert (one - other).abs().max() <= 0.015 * terms.max()


def test_all_but_dq_are_the_same_each_time(made):
    torch.manual_seed(3)
    inputs = drawn(made, (2, 1024, 1024))
    first, *_, learned = gradients(made, inputs)
    for _ in range(20):
        again, *_, of_learned = gradients(made, inputs)
        assert torch.equal(first[1], again[1]) and torch.equal(first[2], again[2])
        assert all(torch.equal(x, of_learned[name][0]) for name, (x, *_) in learned.items())
