"""FlashAttention's options, what they mean a score at a time, and `kernelwright.compile` without a compiler: for tests of
kernelwright.flash."""

import itertools
import math
import subprocess

import pytest
import torch

import kernelwright
from kernelwright.capture import capture, live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright.compiling.kinds import Kinds
from kernelwright.flash import cached, dense, packed
from kernelwright_cli import ROOT

SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
OPTIONS = {
    "plain": {}, "scale": {"scale": 0.3}, "causal": {"causal": True}, "window": {"window": (3, 1)}, "left": {"window": (2, -1)},
    "ahead": {"window": (-1, 0)}, "causal_window": {"causal": True, "window": (3, 5)}, "cap": {"softcap": 2.0, "causal": True},
    "slopes": {"slopes": SLOPES}, "slopes_and_window": {"slopes": SLOPES, "causal": True, "window": (4, 0)}}


@pytest.fixture
def compiled(monkeypatch):
    """Functions run as they are, rows without a key as a kernel has them; gives those that would have been compiled."""
    functions = []

    def compile(function, example_inputs, *, strict=False, **options):
        functions.append((function, example_inputs, options))
        return lambda *inputs: torch.utils._pytree.tree_map(torch.nan_to_num, function(*inputs))

    monkeypatch.setitem(vars(kernelwright), "compile", compile)
    for module in (dense, packed, cached):
        monkeypatch.setattr(module, "_kinds", Kinds())
    return functions


def operands(m=7, n=11, dtype=torch.float32, heads=(4, 2)):
    """q [2, m, 4, 16], k [2, n, 2, 16], v [2, n, 2, 8]."""
    torch.manual_seed(m + n)
    return [torch.randn(2, length, h, d, dtype=dtype) for length, h, d in ((m, heads[0], 16), (n, heads[1], 16), (n, heads[1], 8))]


def by_the_book(q, k, v, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None):
    """A score at a time, in fp64."""
    (B, M, H, D), (N, G) = q.shape, k.shape[1:3]
    out, sums = torch.zeros(B, M, H, v.shape[3], dtype=torch.float64), torch.full((B, H, M), -math.inf, dtype=torch.float64)
    for b, h, i in itertools.product(range(B), range(H), range(M)):
        g, place, scores = h // (H // G), i + N - M, {}
        for j in range(N):
            behind = j - place
            if (causal and behind > 0) or (window[0] >= 0 and -behind > window[0]) or (window[1] >= 0 and behind > window[1]):
                continue
            s = float(q[b, i, h].double() @ k[b, j, g].double()) * (D**-0.5 if scale is None else scale)
            s = softcap * math.tanh(s / softcap) if softcap else s
            scores[j] = s - (0 if slopes is None else float(slopes.expand(B, H)[b, h]) * abs(behind))
        if scores:
            most = max(scores.values())
            weights = {j: math.exp(s - most) for j, s in scores.items()}
            out[b, i, h] = sum(w * v[b, j, g].double() for j, w in weights.items()) / sum(weights.values())
            sums[b, h, i] = most + math.log(sum(weights.values()))
    return out, sums


def assert_equal_but_for_rows_without_keys(out, sums, want, want_sums):
    """sums: log-sums as `compiled` gives them, of which those of rows without a key are no number."""
    torch.testing.assert_close(out.double(), want, rtol=1e-4, atol=1e-5)
    some = want_sums > -math.inf
    torch.testing.assert_close(sums.double()[some], want_sums[some], rtol=1e-4, atol=1e-5)


def form_of(function, inputs, folder):
    """The form that a function is captured as, as the command line prints it, by its lines' first words."""
    spec, _ = live_function.user_spec(function, inputs, Dependencies(function).places)
    capture.write(capture.capture(spec, source=b"# tests\n"), folder / "captured")
    run = subprocess.run([ROOT / "build/kernelwright", "capture", folder / "captured", "--form"], text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert "softmax over j" in run.stdout, run.stdout
    return {"first": run.stdout.splitlines()[0]} | {line.split()[0]: line for line in run.stdout.splitlines()[1:] if line.strip()}
