"""The functions of test_operator.py and of bench/host_time.py, and how their kernels come to a GPU
machine that has no program to make them:

    python tests/gpu/operator_functions.py --out FOLDER [--target sm_90a]

writes, on a machine that can, FOLDER/NAME/ (what a launch reads) and FOLDER/NAME.json (its record).
There `bring` puts them into the cache, under the keys that the functions have with the Python of that
machine, whose byte code is another; kernelwright.compile then finds them as if it had made them."""

import argparse
import json
import os
import pathlib
import shutil
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kernelwright  # noqa: E402
from kernelwright.capture.dependencies import Dependencies  # noqa: E402
from kernelwright.compiling import compiler  # noqa: E402
from kernelwright.compiling.cache import Cache  # noqa: E402

LENGTH = 512
DOCUMENTS = torch.arange(LENGTH, dtype=torch.int32).div(100, rounding_mode="floor").repeat(2, 1)


def _scores(q, k):
    return (q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT) * q.shape[-1] ** -0.5


def _indices(scores):
    return (torch.arange(scores.shape[2], device=scores.device)[:, None],
            torch.arange(scores.shape[3], device=scores.device))


def causal(q, k, v):
    """q [B, 8, M, 128], k and v [B, 2, N, 128]."""
    s = _scores(q, k)
    i, j = _indices(s)
    s = s.masked_fill(j > i, -torch.inf)
    return s.softmax(-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def window(q, k, v, size, heat):
    """[B, S, H, D] tensors and two numbers."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    s = q @ k.mT * heat
    i, j = _indices(s)
    s = s.masked_fill((j > i) | (j <= i - size), -torch.inf)
    return (s.softmax(-1) @ v).transpose(1, 2)


def with_lse(q, k, v):
    """[B, 4, S, 64] tensors; the log-sum-exp is returned too."""
    s = _scores(q, k)
    return s.softmax(-1) @ v, torch.logsumexp(s, dim=-1)


def same_document(b, h, q_idx, kv_idx):
    return (DOCUMENTS[b, q_idx] == DOCUMENTS[b, kv_idx]) & (q_idx >= kv_idx)


def draw(shapes, device):
    return [torch.randn(shape, dtype=torch.bfloat16, device=device) for shape in shapes]


def examples(device="cpu"):
    """(function, example inputs) by name."""
    return {
        "causal": (causal, draw([(2, h, LENGTH, 128) for h in (8, 2, 2)], device)),
        "window": (window, [*draw([(2, LENGTH, 4, 64)] * 3, device), 128, 0.125]),
        "with_lse": (with_lse, draw([(2, 4, LENGTH, 64)] * 3, device)),
        "documents": (kernelwright.flex(mask_mod=same_document), draw([(2, 4, LENGTH, 64)] * 3, device)),
    }


def pack(out, target):
    cache = Cache()
    for name, (function, values) in examples().items():
        compiled = kernelwright.compile(function, values, target=target)
        key = compiler.function_key(Dependencies(function), values, target, "quick")
        record = compiler.find(cache, key)[0]
        (out / name).mkdir(parents=True, exist_ok=True)
        for file in ("kernel.cubin", "launch.json", "certificate.json", "kernel.cu"):
            shutil.copy(compiled.folder / file, out / name / file)
        (out / f"{name}.json").write_text(json.dumps(record))


def bring(folder, target):
    """Puts what pack() wrote into the cache of this machine."""
    cache = Cache()
    for name, (function, values) in examples().items():
        record = json.loads((folder / f"{name}.json").read_text())
        with cache.making() as staging:
            shutil.copytree(folder / name, staging / "kernel")
            cache.add_kernel(record["kernel"], staging / "kernel")
        key = compiler.function_key(Dependencies(function), values, target, "quick")
        cache.write("functions", f"{key}.brought", record)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--target", default="sm_90a")
    arguments = parser.parse_args()
    os.environ.setdefault("KERNELWRIGHT_CACHE", str(arguments.out / "cache"))
    pack(arguments.out, arguments.target)
