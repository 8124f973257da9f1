"""The corpus's backward kernel on a GPU, through our own launcher, against autograd in fp64.

KERNELWRIGHT_BACKWARD names a folder with its kernel.cubin and launch.json, for machines without the program:

    build/kernelwright build kernels/sm90/attention_bwd.cu --out FOLDER/kernel.cubin
    build/tests/launch_plan tests/corpus/sm90_attention_bwd.tl sm_90a FOLDER backward
"""

import os
import pathlib
import subprocess

import pytest
import torch

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
SHAPES = [(1, 2, 2, 64, 128), (2, 4, 2, 513, 500), (1, 2, 1, 333, 777), (1, 3, 3, 777, 333), (2, 8, 2, 1024, 1000),
          (1, 1, 1, 1, 40)]  # B, H, G, M, N


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    from kernelwright.runtime.launch import Kernel
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    folder = os.environ.get("KERNELWRIGHT_BACKWARD")
    if folder is None:
        folder = tmp_path_factory.mktemp("backward")
        subprocess.run([ROOT / "build/kernelwright", "build", ROOT / "kernels/sm90/attention_bwd.cu", "--out",
                        folder / "kernel.cubin"], check=True)
        subprocess.run([ROOT / "build/tests/launch_plan", ROOT / "tests/corpus/sm90_attention_bwd.tl", "sm_90a", folder,
                        "backward"], check=True)
    return Kernel(folder)


def drawn(B, H, G, M, N, spread=1.0):
    """q, k, v and the output's gradient, in memory as [B, rows, heads, D]."""
    return [(torch.randn(B, rows, heads, 128, device="cuda") * spread).bfloat16().transpose(1, 2)
            for heads, rows in ((H, M), (G, N), (G, N), (H, M))]


def forward(q, k, v):
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT * 128**-0.5
    return scores.softmax(-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], 1), scores.logsumexp(-1)


def gradients(kernel, q, k, v, d_o):
    """(dq, dk, dv) of the kernel, those of autograd in fp64, and the output."""
    leaves = [t.double().requires_grad_() for t in (q, k, v)]
    o, lse = forward(*leaves)
    want = torch.autograd.grad(o, leaves, d_o.double())
    stored = o.detach().bfloat16().transpose(1, 2).contiguous().transpose(1, 2)
    rest = (o.detach() - stored).bfloat16()
    got = dict(zip(kernel.outputs, kernel(q=q, k=k, v=v, o=stored, o_rest=rest, do_rows=d_o, d_o=d_o, lse=lse.detach().float().contiguous())))
    return [got[name].double() for name in ("dq", "dk", "dv")], want, o.detach()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_autograds(kernel, shape):
    torch.manual_seed(1)
    q, k, v, d_o = drawn(*shape)
    got, want, _ = gradients(kernel, q, k, v, d_o)
    for name, x, y in zip(("dq", "dk", "dv"), got, want):
        error = ((x - y).norm() / y.norm()).item()
        print(f"{shape} {name} {error:.2e}")
        assert error < 0.004  # autograd in bf16 errs by 0.005 to 0.007


@pytest.mark.parametrize("shape", SHAPES[1:4], ids=str)
def test_what_holds_of_any_attention_holds_of_the_gradients(kernel, shape):
    """o is linear in v: sum <o, do> = sum <v, dv>; scores do not change when q grows as k shrinks: sum <q, dq> = sum <k, dk>."""
    torch.manual_seed(2)
    q, k, v, d_o = drawn(*shape)
    (dq, dk, dv), _, o = gradients(kernel, q, k, v, d_o)
    groups = (q.shape[0], k.shape[1], -1)
    for a, b, c, d in ((o, d_o, v, dv), (q, dq, k, dk)):
        one, other = (a.double() * b.double()).sum((-1, -2)).view(groups).sum(-1), (c.double() * d).sum((-1, -2))
        # Gradients are off by 0.0024 of themselves at random, so a sum by as much of its terms' norm: six times that.
        assert (one - other).abs().max() <= 0.015 * (a.double() * b.double()).pow(2).sum((-1, -2)).sqrt().max()


def test_dk_and_dv_are_the_same_each_time(kernel):
    torch.manual_seed(3)
    q, k, v, d_o = drawn(1, 4, 4, 1024, 1024)
    first, *_ = gradients(kernel, q, k, v, d_o)
    for _ in range(20):
        again, *_ = gradients(kernel, q, k, v, d_o)
        assert torch.equal(first[1], again[1]) and torch.equal(first[2], again[2])
