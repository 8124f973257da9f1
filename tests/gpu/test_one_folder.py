"""Both kernels of a folder that `make --backward` wrote, one after the other through its launch.h: what the forward launch
saves is what the backward one reads. dq, dk and dv against autograd in fp64, at ragged shapes.

KERNELWRIGHT_ONE_FOLDER names a folder with NAME/ (made) and NAME.so (one_folder.cpp), for machines without the program or a
compiler; without it they are made.
"""

import ctypes
import math
import os
import pathlib
import subprocess

import pytest
import torch

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
NAMES = ["full", "causal", "softcap"]
SHAPES = [(1, 64, 128), (2, 513, 500), (1, 333, 777), (1, 777, 333), (1, 1, 40), (2, 1024, 1000)]  # B, M, N
HALF_ULP, LARGEST_OWN = 2.0**-9, 2.0**-4  # num/compare.h
NOISE = 2.0**-20  # of do . v in fp32: operator/families/attention_bwd/truth.cpp


def build(folder, name, out):
    cuda = next((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/include"))
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-DKW_NAME={name}", f"-isystem{cuda}", f"-I{folder}",
                    str(ROOT / "tests/gpu/one_folder.cpp"), "-o", str(out)], check=True)


@pytest.fixture(scope="module", params=NAMES)
def step(request, tmp_path_factory):
    """(the example, a function of addresses and sizes)"""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("kernels for Hopper")
    name, given = request.param, os.environ.get("KERNELWRIGHT_ONE_FOLDER")
    here = pathlib.Path(given or tmp_path_factory.mktemp("one"))
    if not given:
        subprocess.run([ROOT / "build/kernelwright", "make", ROOT / f"examples/{name}.py", "--backward", "--check", "quick",
                        "--out", here / name], check=True)
        build(here / name, name, here / f"{name}.so")
    return opened(here, name)


def opened(here, name):
    from kernelwright.capture import load
    torch.cuda.init(), torch.zeros(1, device="cuda")
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    call = ctypes.CDLL(str(here / f"{name}.so")).train_step
    call.restype = ctypes.c_char_p
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def run(tensors, sizes):
        wrong = call(str(here / name).encode(), (ctypes.c_uint64 * len(tensors))(*(t.data_ptr() for t in tensors)),
                     (ctypes.c_int64 * len(sizes))(*sizes), multiprocessors, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        assert wrong is None, wrong
    return load.load(str(ROOT / f"examples/{name}.py")), run


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_what_the_forward_launch_saved_are_autograds(step, shape):
    compare(*step, shape)


def compare(spec, run, shape):
    turned = spec.name == "causal"  # which takes [B, rows, heads, D]
    turn = (lambda x: x.transpose(1, 2)) if turned else (lambda x: x)
    heads = 2 if turned else 1
    (B, M, N), H, G, D = shape, spec.values[0].shape[heads], spec.values[1].shape[heads], spec.values[0].shape[3]
    torch.manual_seed(1)
    empty = lambda rows, h, **how: torch.full((B, h, rows, D), torch.nan, device="cuda", dtype=torch.bfloat16, **how)
    q, k, v, d_o = (torch.randn(B, h, rows, D, device="cuda").bfloat16() for h, rows in ((H, M), (G, N), (G, N), (H, M)))
    o, dq, dk, dv = empty(M, H), empty(M, H), empty(N, G), empty(N, G)
    o_f32, lse = torch.empty(B, H, M, D, device="cuda"), torch.empty(B, H, M, device="cuda")
    run([q, k, v, o, o_f32, lse, d_o, dq, dk, dv], [B, H, G, M, N, D])

    def gradients(tensors):
        leaves = [t.clone().requires_grad_() for t in tensors]
        found = turn(spec.function(*(turn(t) for t in leaves)))
        return found.detach(), torch.autograd.grad(found, leaves, d_o.to(found.dtype))
    want_o, want = gradients([t.double() for t in (q, k, v)])
    _, own = gradients([q, k, v])
    for name, x, y, z in zip(("dq", "dk", "dv"), (dq, dk, dv), want, own):
        difference, size = (x.double() - y).norm(dim=-1), y.norm(dim=-1)
        theirs = ((z.double() - y).norm(dim=-1) / size).nan_to_num(0).clamp(max=LARGEST_OWN)
        # Roundings of ds meet in rows where terms cancel, beside what is of the row's own size: a thousandth of the largest row.
        allowed = 2 * theirs.clamp(min=HALF_ULP) * size + 1e-3 * size.max()
        # Of a single key the gradient of a score is 0, and in fp32 do . v less do . o is not quite.
        floats = NOISE * D**-0.5 * math.prod(t.float().norm(dim=-1).max().item() for t in (d_o, v, q if name == "dk" else k))
        allowed = allowed if name == "dv" else allowed.clamp(min=floats * (H // G if name == "dk" else 1))
        ratio = (difference / allowed).max().item()
        whole = f"{(difference.norm() / size.norm()).item():.2e}" if size.any() else f"0, made {difference.norm().item():.1e}"
        print(f"{spec.name} {shape} {name}: worst row {ratio:.2f} of accepted, whole {whole}")
        assert not x.isnan().any() and ratio <= 1
    assert (o.double() - want_o).norm() / want_o.norm() < 5e-3
